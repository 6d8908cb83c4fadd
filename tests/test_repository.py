"""The rules of CONTRIBUTING.md that a test can hold, and the numbers that the README takes from a report."""

import ast
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from stages.attention import counts
from stages.evidence.estimate import between
from stages.evidence.scores import COLUMNS, GLUE_SCORE, column_scores, mean_scores
from stages.files import observations

ROOT = Path(__file__).parents[1]
TESTS = sorted((ROOT / "tests").glob("test_*.py"))


def imported(path: Path) -> set[str]:
    """The last names of all modules that a file imports, and of what it imports from them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.rpartition(".")[2] for name in names}


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_no_test_imports_another(path):
    assert not imported(path) & {other.stem for other in TESTS}


def test_the_operators_need_torch_and_transformers_alone():
    for path in (ROOT / "stages/attention").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            absolute = isinstance(node, ast.ImportFrom) and not node.level
            names = [node.module] if absolute else [a.name for a in node.names] if isinstance(node, ast.Import) else []
            for name in {name.split(".")[0] for name in names}:
                known = name in {"fewer_attention", "torch", "transformers"} or name in sys.stdlib_module_names
                assert known, (path, name)


def test_the_workflow_and_the_hooks_call_what_is_here():
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["checks"]["steps"] if "run" in step]
    assert commands == [".ci/run"] and (ROOT / ".ci/run").stat().st_mode & 0o111
    hooks = [
        hook
        for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
        for hook in repository["hooks"]
    ]
    assert {hook["entry"].split()[0] for hook in hooks} == {"ruff"}


NAMES = {  # of operators in the tables of the findings, where they are not the keys
    "tied_qkv": "shared without diagonals",
    "pairwise_scaled": "pairwise, S from N(0, 1/d) (`pairwise_scaled`)",
}


@pytest.mark.parametrize(
    ("study", "heading", "spreads", "operators"),
    [
        (
            "plateau",
            "against original",
            "three spreads",
            ["symmetric", "pairwise", "shared", "tied_qkv"],
        ),
        ("plateau_deep", "against original, deeper", "three spreads", ["symmetric", "pairwise", "shared"]),
    ],
)
def test_the_findings_have_the_verdicts_and_numbers_of_the_studies_of_the_plateau(study, heading, spreads, operators):
    page = (ROOT / "reports/examples/README.md").read_text(encoding="utf-8").replace("−", "-")
    tables = ROOT / "reports/examples" / study / "tables"
    tests = pd.read_csv(tables / "plateau_tests.csv").set_index(["question", "term"])
    places = pd.read_csv(tables / "plateau_places.csv", dtype={"place": str}).set_index(["question", "term", "place"])

    def single(place: pd.Series) -> str:
        mark = "*" if place["verdict"] == "undecided" else ""
        return f"{mark}{place['difference']:.0f}{mark}"

    _, _, below = page.partition(f"\n| {heading} | mean over {spreads} |")
    lines = below.split("\n\n")[0].splitlines()[2:]
    assert len(lines) == len(operators)
    for term, line in zip(operators, lines, strict=True):
        row = tests.loc[("operator", term)]
        numbers = [f"{row['difference']:.0f} ({row['low']:.0f} to {row['high']:.0f})"]
        singly = [single(places.loc[("operator", term, place)]) for place in ("0.05", "0.3", "1")]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[0].startswith(NAMES.get(term, term))
        assert cells[1:-2] == [*numbers, *singly] and cells[-2].partition(",")[0] == row["verdict"]
        if ("source", term) in tests.index:
            source = tests.loc[("source", term)]
            assert cells[-1].startswith(f"{source['runs'] - source['never']} of {source['runs']}")
        else:
            assert cells[-1] == ""


def test_the_findings_have_the_scores_of_the_run_on_real_text():
    page = (ROOT / "reports/examples/README.md").read_text(encoding="utf-8").replace("−", "-")
    compared = pd.read_csv(ROOT / "reports/examples/files/contrasts.csv").query("at == 'glue_score'").set_index("arm")
    for row in pd.read_csv(ROOT / "reports/examples/files/tables/overview.csv").itertuples():
        name = NAMES.get(row.operator, row.operator)
        [line] = [line for line in page.splitlines() if line.startswith(f"| {name} |") and line.count("|") == 5]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[1] == f"{row.glue_score:.2f}"
        if row.operator != "original":
            against = compared.loc[row.operator]
            verdict = against.direction if against.verdict == "different" else "undecided"
            assert cells[2:] == [f"{against.estimate:.2f} ({against.low:.2f} to {against.high:.2f})", verdict]


def said(page: str) -> str:
    """The text of a page without its breaks of lines, and with a hyphen for a minus."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").replace("−", "-").split())


def test_the_findings_have_the_counts_of_the_audit():
    laptop = ROOT / "reports/examples/laptop"
    totals = pd.read_csv(laptop / "tables/audit_totals.csv")
    (courtois, kowsher, blog, draft), left = zip(totals["fails"], totals["facts"], strict=True), totals["not_decided"]
    page = said("reports/examples/README.md")
    assert "{} of {} fail in Courtois et al. (2024), ".format(*courtois) in page
    assert "{} of {} in the two editions of Kowsher et al.,".format(*kowsher) in page
    assert blog == (0, 3) and "none of 3 in the blog post and {} of {} in the draft section".format(*draft) in page
    assert left.sum() == 5 and "five more are left undecided" in page


def test_the_pages_have_the_scores_of_the_default_run_by_seed_and_what_pre_training_is_worth():
    page = said("reports/examples/README.md")
    laptop = ROOT / "reports/examples/laptop"
    rows = observations.read([laptop / "observations/finetuning.csv"])
    by_seed = column_scores(rows.assign(stage="finetuning")).groupby(["operator", "pretraining_seed"])["value"]
    assert set(by_seed.size()) == {len(COLUMNS)}
    score = 100 * by_seed.mean()
    assert "GLUE score {:.1f}, {:.1f} and {:.1f} by seed".format(*score["original"]) in page
    lost = score["original"] - score["not_pretrained"]
    assert "scores {:.1f}, {:.1f} and {:.1f} points less on these seeds".format(*lost) in page
    means = score.groupby("operator").mean()
    symmetric, pairwise, shared = (f"{means[name]:.1f}" for name in ("symmetric", "pairwise", "shared"))
    assert f"Symmetric has {symmetric} on average, pairwise {pairwise}, shared {shared}:" in page
    baselines = pd.read_csv(laptop / "tables/baselines.csv").set_index("evaluated_on")
    cells = pd.read_csv(laptop / "tables/courtois2024_table3_glue.csv").set_index(["row", "column"])["reproduced_mean"]
    above = baselines["best_rule"] > cells["tiny.original"].reindex(baselines.index)
    assert set(above.index[above]) == {"qqp", "mnli_mm"}
    assert "on QQP and MNLI-mm a rule on one property does better than it" in page
    recipe = yaml.safe_load((laptop / "params.yaml").read_text(encoding="utf-8"))["pretraining"]
    assert recipe["sequence_length_warmup"] == {"share": 2 / 5, "length": 16}
    assert "two fifths of it on blocks of 16 tokens" in page and "for two fifths of its steps" in page


def test_the_examples_page_has_the_scores_of_translation_and_the_losses_of_pretraining():
    page = said("reports/examples/README.md")
    rows = pd.read_csv(ROOT / "reports/examples/translation/observations.csv")
    bleu = (
        rows[rows["metric"] == "beam_bleu"].sort_values("pretraining_seed").groupby(["protocol", "operator"])["value"]
    )
    pairs = {key: " and ".join(f"{value:.1f}" for value in values) for key, values in bleu}
    assert (
        f"original {pairs['draft', 'original']}, attention over parameters {pairs['draft', 'over_parameters']}, "
        f"its wide form {pairs['draft', 'over_parameters_wide']};"
    ) in page
    assert (
        f"original {pairs['blog', 'original']}, Hadamard {pairs['blog', 'hadamard']}, fixed {pairs['blog', 'fixed']}."
    ) in page
    copied = {f"{value:.1f}" for value in rows.loc[rows["metric"] == "copy_bleu", "value"]}
    assert len(copied) == 1 and f"The source left as it is has {copied.pop()}." in page
    for example in ("laptop", "files"):
        paths = (ROOT / "reports/examples" / example / "observations").glob("pretraining*.csv")
        losses = pd.concat(pd.read_csv(path).query("metric == 'validation_loss'") for path in paths)
        steps = losses["condition"].str.removeprefix("step=").astype(int)
        last = losses.loc[steps == steps.max(), "value"]
        assert f"({last.min():.2f} to {last.max():.2f} nats)" in page


def test_the_findings_take_further_numbers_of_the_studies_from_their_tables():
    page = said("reports/examples/README.md")
    plateau, files = (ROOT / "reports/examples" / name / "tables" for name in ("plateau", "files"))
    arms = pd.read_csv(plateau / "plateau_arms.csv").set_index("arm")
    assert len(arms) == 31 and "31 arms and eight seeds" in page and set(arms["runs"]) == {8}
    assert f"gives pairwise a spread of {arms.loc['pairwise', 'spread']:.2f}" in page
    hot = arms[(arms["kind"] == "scaled") & arms["spread"].isin([3.0, 8.0])]
    assert (hot["runs"].sum(), (hot["runs"] - hot["never"]).sum()) == (80, 1) and "one of 80" in page
    deep = ROOT / "reports/examples/plateau_deep/tables"
    pairwise = pd.read_csv(deep / "plateau_tests.csv").query("question == 'operator' and term == 'pairwise'").iloc[0]
    assert f"times differ after Holm's correction (p = {pairwise['p_holm']:.2f})" in page
    assert f"do not (p = {pairwise['flip_p_holm']:.2f})" in page and "p below 0.094" in page
    first = pd.read_csv(plateau / "plateau_tests.csv").query("question == 'operator' and term == 'pairwise'").iloc[0]
    deeper, shallower = (
        f"{row['difference']:.0f}{{}}, {row['low']:.0f} to {row['high']:.0f}" for row in (pairwise, first)
    )
    both = f"({deeper.format(' steps')}, against {shallower.format('')})"
    assert both in page
    spreads = pd.read_csv(deep / "plateau_arms.csv").set_index("arm")["spread"]
    assert f"gives it a spread of {spreads['pairwise']:.2f} here, original {spreads['original']:.2f}" in page
    places = pd.read_csv(plateau / "plateau_places.csv", dtype={"place": str}).query("question == 'operator'")
    lead = places[(places["term"] == "symmetric") & places["place"].isin(("0.05", "0.3", "1"))]["difference"].mean()
    assert f"{lead:.0f} steps over these three spreads" in page
    wide = [
        pd.read_csv(study / "plateau_tests.csv").query("question == 'spread' and term == '0.3'")["difference"].item()
        for study in (plateau, deep)
    ]
    assert f"({wide[0]:.0f} and {wide[1]:.0f} steps" in page
    assert set(pd.read_csv(deep / "plateau_arms.csv")["runs"]) == {6} and "width 128, six seeds" in page
    steps = pd.read_csv(files / "milestones.csv").query("source == 'released' and size == 'base'")
    leaving = steps[steps["milestone"] == "plateau_end_step"].set_index("operator")["mean"]
    reached = steps[steps["milestone"] == "loss=2.5"].set_index("operator")["mean"]
    assert f"comes at {reached['pairwise']:,.0f} (pairwise) and {reached['original']:,.0f} (original)" in page
    assert f"leaves at step {leaving['pairwise']:,.0f} and the original at {leaving['original']:,.0f}" in page
    against = pd.read_csv(files / "against_original.csv").query("source == 'reproduced'")
    whole = against[against["at"] == "glue_score"].set_index("arm")
    assert f"(pairwise: p = {whole.loc['pairwise', 'p_holm']:.3f};" in page
    assert whole["paired"].all() and set(whole["n"]) == {3} and "three pairs of equal seeds" in page
    assert set(whole["tests"]) == {5} and "Holm's correction for five comparisons" in page
    rows = observations.read(sorted((files.parent / "observations").glob("finetuning*.csv")))
    rows = mean_scores(column_scores(rows.assign(stage="finetuning")))
    rows = rows[rows["evaluated_on"] == GLUE_SCORE].set_index("operator")
    untrained = rows.loc["original"], rows.loc["not_pretrained"]
    gain = between(*untrained, confidence=0.95)
    gains = "{:.1f} points more ({:.1f} to {:.1f})".format(*(100 * x for x in (gain.value, gain.low, gain.high)))
    assert gain.paired and f"fine-tuned from its untrained weights: {gains}" in page
    gain = between(rows.loc["pairwise_scaled"], rows.loc["pairwise"], confidence=0.95)
    gains = "{:.1f} points higher ({:.1f} to {:.1f})".format(*(100 * x for x in (gain.value, gain.low, gain.high)))
    assert gain.paired and f"is {gains}" in page
    losses = pd.read_csv(files.parent / "contrasts.csv").query("at == 'validation_loss'").set_index("arm")
    assert losses["paired"].all() and set(losses.index[losses["direction"] == "higher"]) == set(losses.index[:4])
    last = pd.read_csv(files / "overview.csv").set_index("operator").loc["original", "validation_loss"]
    assert f"the original's final loss ({last:.2f} nats)" in page
    bag = pd.read_csv(files / "baselines.csv").set_index("evaluated_on")["bag_of_words"]
    scores = pd.read_csv(files / "courtois2024_table3_glue.csv").set_index(["row", "column"])["reproduced_mean"]
    scores = scores["mini.original"].reindex(bag.index)
    above = scores > bag
    assert set(above.index[above]) == {"mnli_m", "mnli_mm", "rte"}
    numbers = [f"{values[name]:.1f}" for values in (scores, bag) for name in ("mnli_m", "mnli_mm")]
    assert "MNLI ({} and {} against {} and {}) and RTE, where both guess".format(*numbers) in page
    for arm in losses.index:
        row = losses.loc[arm]
        assert f"{row['estimate']:.3f} nats ({row['low']:.3f} to {row['high']:.3f})" in page, arm
    counted = pd.read_csv(files.parent / "observations/parameters.csv").query("size == 'mini'")
    spreads = counted[counted["metric"] == "first_score_spread"].set_index("operator")["value"]
    assert f"spread by {spreads['pairwise']:.2f}, those of the original by {spreads['original']:.2f}" in page
    assert f"they spread by {spreads['pairwise_scaled']:.2f}" in page
    size = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["models"]["base"]
    base, hot = (counts.first_score_spread(operator, size, deviation=0.02) for operator in ("original", "pairwise"))
    assert f"at BERT-base the weights of the authors' code give {hot:.2f} and {base:.2f}" in page
    note = (ROOT / "stages/evidence/tables.yaml").read_text(encoding="utf-8")
    assert f"BERT-base has {base:.3f} (original) and {hot:.3f} (pairwise)" in note
    words = pd.read_csv(files / "overview.csv")["words_and_overlap"].unique()
    score = f"linear model of words and their overlap has a higher GLUE score ({words[0]:.1f})"
    assert len(words) == 1 and score in page
    trained = pd.read_csv(files / "tasks.csv").query("split == 'train'").set_index("task")["examples"]
    for task, name in (("qqp", "QQP"), ("mnli", "MNLI"), ("qnli", "QNLI")):
        assert f"{trained[task]:,} of {name}" in page
    tested = pd.read_csv(files / "tasks.csv").set_index(["task", "split"])["examples"]
    half = f"{tested['qqp', 'validation']:,} examples of QQP and {tested['mnli', 'validation_mismatched']:,} of MNLI-mm"
    assert half in page
    cells = pd.read_csv(ROOT / "reports/examples/laptop/tables/courtois2024_table3_glue.csv")
    cells = cells.pivot(index="column", columns="row", values="reproduced_mean").loc[list(COLUMNS)]
    own = cells["tiny.original"]
    below = own < cells["baseline.words_and_overlap"]
    assert {*below.index[below]} == {"mnli_mm", "rte"} and len(below) == 9
    assert "a linear model of words and their overlap on seven of nine columns, not on RTE and MNLI-mm" in page
    assert (own > cells["baseline.most_frequent"]).all() and "and than a constant answer on all, on QQP only in" in page
    told = places["p_holm"].notna()
    assert f"Holm's correction counts {told.sum()} comparisons" in page
    assert not places["verdict"].isin(["sooner", "later"]).any() and "No difference at a single spread" in page
    assert (
        {"cola", "mrpc", "rte"} == set(against.loc[against["at_chance"], "at"])
        and "on CoLA, MRPC and RTE no operator's mean is above the 95 % interval, over examples, of a constant answer"
        in page
    )
    for arm in ("symmetric", "shared"):
        assert f"{arm}: p = {whole.loc[arm, 'p_holm']:.3f}" in page
    found = whole.loc[whole["direction"] != "lower", "detectable"]
    assert f"{found.min():.1f} to {found.max():.1f} points would be found with 80 % power, at that step" in page
    entropy = pd.read_csv(files / "probes.csv").groupby("operator")["attention_entropy"].agg(["min", "max"]).round(2)
    ends = (
        f"{entropy.loc[key, 'min']:.2f} to {entropy.loc[key, 'max']:.2f}" for key in ("pairwise", "pairwise_scaled")
    )
    assert " of the largest possible, `pairwise_scaled` ".join(ends) in page
