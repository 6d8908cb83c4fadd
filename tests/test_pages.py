"""The numbers on the pages of the studies follow from the observations."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from stages.analysis import contrasts
from stages.attention import counts
from stages.evidence import measurements, published
from stages.files.documents import read_yaml
from stages.report import names
from stages.report.looks import PAPER
from stages.report.tables import write_csv
from stages.tools import example_numbers, inference, pages, steps_benchmark, studies, study_figures

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "reports/examples"
STUDIES = sorted(path.parent for path in EXAMPLES.rglob("analysis.yaml"))


@pytest.fixture(autouse=True)
def in_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_the_comparisons_of_a_study_follow_from_the_observations(study):
    for name, frame in studies.compute_study(study).items():
        assert write_csv(frame) == (study / f"{name}.csv").read_text(encoding="utf-8"), name


TABLES = {
    "released.csv": studies.judge_released,
    "benchmark/results.csv": steps_benchmark.list_results,
    "statistics/detectable.csv": inference.list_detectable,
}


@pytest.mark.parametrize("path", TABLES)
def test_a_table_of_a_page_follows_from_observations(path):
    committed = (EXAMPLES / path).read_text(encoding="utf-8")
    assert write_csv(TABLES[path]()) == committed


@pytest.mark.parametrize(("length", "comparisons"), [("8_tokens", 26), ("16_tokens", 14)])
def test_the_comparisons_of_own_score_follow_from_the_observations(length, comparisons):
    folder = EXAMPLES / "own_score" / length
    options = read_yaml(folder / "params.yaml")["analysis"]
    measured = measurements.compute_measurements(studies.read_in_order(folder), options["levels"])
    quantities = contrasts.collect_quantities(studies.read_in_order(folder), measured, {})
    frame = contrasts.make_contrasts(
        {"reproduced": quantities}, options["confidence"], options["alpha"], options["pairs"]
    )
    keys = ["at", "arm", "reference"]
    made = frame.set_index(keys)
    committed = pd.read_csv(folder / "contrasts.csv", dtype={"direction": "str"}).set_index(keys)
    assert len(made) == len(committed) == comparisons
    numbers = ["estimate", "low", "high", "p_flips", "n", "tests"]
    assert committed[numbers].to_numpy(float) == pytest.approx(
        made.loc[committed.index, numbers].to_numpy(float), nan_ok=True
    )
    assert committed["direction"].fillna("").tolist() == made.loc[committed.index, "direction"].tolist()


@pytest.mark.parametrize("size", ["base", "mini"])
def test_the_shares_of_own_score_are_counted_parameters(size):
    settings = read_yaml(EXAMPLES / "own_score/8_tokens/params.yaml")
    shares = pages.list_rows("own_score/8_tokens/summaries.csv", metric="block_saved_percent", size=size)
    assert len(shares) == 9

    def count(operator: str) -> int:
        variant = settings["variants"].get(operator, {"operator": operator})
        formulas = counts.compute_attention_formulas(variant["operator"], settings["models"][size])
        return formulas["attention_block_parameters"]

    for row in shares:
        assert row["mean"] == pytest.approx(100 * (1 - count(row["operator"]) / count("original")))


def test_the_simulated_error_rates_are_those_of_the_page():
    made = inference.simulate_error_rates()
    committed = pd.read_csv(EXAMPLES / "statistics/error_rates.csv")
    for column in ("pooled", "paired"):
        assert committed[column].tolist() == pytest.approx(made[column].tolist(), abs=0.002)


@pytest.mark.parametrize(("operators", "freedom", "value"), [(3, 20, 2.54), (6, 30, 2.72), (1, 10, 2.228)])
def test_dunnetts_value_is_the_value_of_his_table(operators, freedom, value):
    assert inference.compute_dunnett_value(operators, freedom) == pytest.approx(value, abs=0.006)


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """A copy of the only entry of the benchmark; `edit` replaces a text in a file of the entry."""
    folder = tmp_path / "english"
    shutil.copytree(EXAMPLES / "english", folder)
    entries = tmp_path / "entries.yaml"
    entries.write_text('- {folder: "english", text: "d6dce519", commit: "1234567", by: "somebody"}')
    monkeypatch.setattr(steps_benchmark, "EXAMPLES", tmp_path)
    monkeypatch.setattr(steps_benchmark, "ENTRIES", entries)

    def edit(name, text, other):
        path = tmp_path / name
        assert path.read_text().count(text) == 1
        path.write_text(path.read_text().replace(text, other))

    return edit


def test_the_rows_of_an_entry_are_its_comparisons(entry):
    rows = steps_benchmark.list_results().set_index("operator")
    assert len(rows) == 9
    delay = pages.look_up_contrast("english", "symmetric", "loss=5.5")
    assert rows.loc["symmetric", ["later", "low", "high"]].tolist() == [delay["estimate"], delay["low"], delay["high"]]
    assert rows.loc["symmetric", "level"] == 0.975
    assert rows["steps"].dropna().is_monotonic_increasing
    assert set(rows["page"]) == {"english"}


FAULTS = {
    "another length of training": (
        "english/params.yaml",
        "  steps: 2400 ",
        "  steps: 3000 ",
        "pretraining.steps is 3000",
    ),
    "another size": ("english/params.yaml", "sizes: [mini]", "sizes: [small]", "set sizes: [mini]"),
    "no baseline": (
        "english/params.yaml",
        "operators: [original, sym",
        "operators: [sym",
        "list `original` in operators",
    ),
    "no section": ("english/params.yaml", "variants:\n", "variant:\n", "no variants; write the settings"),
    "too few seeds": ("english/params.yaml", "[31, 32, 33, 34]", "[31, 32]", "use at least 4 seeds"),
    "a run that is missing": (
        "english/params.yaml",
        "[31, 32, 33, 34]",
        "[31, 32, 33, 35]",
        "original has finished runs",
    ),
    "a laxer test": ("english/analysis.yaml", "alpha: 0.025", "alpha: 0.2", "alpha: 0.2; set alpha to at most 0.05"),
    "a text as alpha": ("english/analysis.yaml", "alpha: 0.025", "alpha: '0.025'", "set alpha to at most 0.05"),
    "another level": ("english/analysis.yaml", "levels: [5.5, ", "levels: [", "add 5.5"),
    "no entry": (
        "entries.yaml",
        '- {folder: "english", text: "d6dce519", commit: "1234567", by: "somebody"}',
        "- a",
        "given a",
    ),
    "an unknown operator": (
        "english/params.yaml",
        "{operator: pairwise, start",
        "{operator: mine, start",
        "copy my_op",
    ),
    "a commit without quotes": ("entries.yaml", '"1234567"', "1234567", "each a text in quotes"),
    "another folder": ("entries.yaml", '"english"', '"nowhere"', "params.yaml: missing"),
}


@pytest.mark.parametrize(("name", "text", "other", "message"), FAULTS.values(), ids=FAULTS)
def test_an_entry_that_breaks_a_rule_is_refused_with_file_and_remedy(entry, name, text, other, message):
    entry(name, text, other)
    with pytest.raises(ValueError, match=re.escape(message)):
        steps_benchmark.list_results()


def test_a_run_that_was_cut_is_refused(entry, monkeypatch):
    rows = studies.read_observations(EXAMPLES / "english")
    late = (rows["operator"] == "symmetric") & (rows["condition"] == "step=2400") & (rows["pretraining_seed"] == 33)
    monkeypatch.setattr(studies, "read_observations", lambda folder: rows[~late])
    with pytest.raises(ValueError, match=re.escape("symmetric has finished runs of the seeds [31, 32, 34]")):
        steps_benchmark.list_results()


def test_a_section_that_is_copied_with_its_heading_is_refused(tmp_path):
    (tmp_path / "analysis.yaml").write_text("analysis:\n  confidence: 0.95\n")
    with pytest.raises(ValueError, match="no confidence; the file has the lines below"):
        studies.read_options(tmp_path)


@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_is_the_rendering_of_its_template(page):
    assert pages.render(page) == (ROOT / pages.PAGES[page]).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "stages/README.md", "stages/attention/README.md", "CONTRIBUTING.md"])
def test_code_is_not_cut_where_a_code_host_shows_98_columns(page):
    blocks = re.findall(r"^```.*?^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    assert max(len(line) for block in blocks for line in block.splitlines()) <= 96


def list_links(text):
    """Lists the relative targets of links and pictures, in Markdown or HTML, without anchors."""
    targets = re.findall(r'\]\(([^)#\s]+)|(?:href|src)="([^"#]+)', text)
    return [target for found in targets for target in found if target and ":" not in target]


LINKED = [*pages.PAGES.values(), Path("ERRATA.md"), EXAMPLES / "h100/README.md", *EXAMPLES.rglob("*.html")]


@pytest.mark.parametrize("path", LINKED, ids=lambda path: str(path).removeprefix(f"{EXAMPLES}/"))
def test_links_of_a_page_lead_to_files(path):
    page = ROOT / path
    targets = list_links(page.read_text(encoding="utf-8"))
    if page.parent == ROOT:
        # `../../actions` of README.md is a page of the code host, beside the files of the repository
        targets = [target for target in targets if not target.startswith("../../")]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


PUBLISHED = sorted([*EXAMPLES.rglob("*.md"), *EXAMPLES.rglob("*.html")])


@pytest.mark.parametrize("page", PUBLISHED, ids=lambda page: str(page.relative_to(EXAMPLES)))
def test_links_of_a_published_page_do_not_leave_the_folder_that_is_published(page):
    targets = list_links(page.read_text(encoding="utf-8"))
    outside = [target for target in targets if not (page.parent / target).resolve().is_relative_to(EXAMPLES)]
    assert outside == []


@pytest.mark.parametrize("path", pages.FIGURES)
def test_the_figure_of_a_study_names_every_arm_and_is_small(path):
    folder = (EXAMPLES / path).parent
    figure = pages.draw_figure(folder, pages.FIGURES[path])
    words = " ".join(re.findall(r"<text[^>]*>([^<]*)", figure.decode()))
    for arm in read_yaml(folder / "params.yaml")["operators"]:
        assert names.name_operator(arm).split()[0] in words
    assert len(figure) < 60_000


def test_a_dot_of_a_run_that_never_falls_below_the_level_is_hollow():
    runs = pd.DataFrame({"operator": ["shared", "shared"], "step": [5, 9], "reached": [True, False]})
    axes = Figure().subplots()
    study_figures.draw_dots(axes, runs, "step")
    assert [line.get_markerfacecolor() == PAPER for line in axes.lines] == [False, True]


def test_every_claim_is_counted_once_by_the_verdict_of_the_audit():
    counts = {paper: example_numbers.count_claims(paper) for paper in published.PAPERS}
    totals = pd.read_csv(EXAMPLES / "laptop/tables/claim_totals.csv").query("ledger == 'Audit'").set_index("source")
    for paper, source in published.PAPERS.items():
        assert sum(counts[paper].values()) == totals.loc[source, "claims"]
        assert counts[paper].get("holds", 0) == totals.loc[source, "holds"]


def test_a_comparison_that_a_study_lacks_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"english/contrasts\.csv: 0 rows with .*'nothing'"):
        pages.look_up_contrast("english", "nothing", "loss=5.5")
