"""Analysis and report from observations to files, on made-up numbers."""

import json
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from stages import analysis, observations, report
from stages.evidence import scores, specifications
from stages.observations import Observation

ROOT = Path(__file__).parents[1]
OPERATORS = ("original", "symmetric", "pairwise", "shared")
TASKS = {column: column.split("_")[0] for column in scores.COLUMNS}
VOID = {"meta", "path", "use", "rect", "br", "link", "img"}


def write_observations(columns: tuple[str, ...], seed: int = 0) -> None:
    """Counts, losses and scores of four operators at the size `tiny`; two pre-training and three fine-tuning seeds."""
    generator = np.random.default_rng(seed)
    counts = [
        Observation(stage="parameters", operator=operator, size="tiny", metric=metric, value=value - 100 * place)
        for place, operator in enumerate(OPERATORS)
        for metric, value in (("attention_parameters", 12480), ("masked_lm_parameters", 2092538))
    ]
    observations.write(observations.FOLDER / "parameters.csv", counts)
    for operator in OPERATORS:
        own = {"operator": operator, "size": "tiny"}
        losses = [
            Observation(
                stage="pretraining",
                metric="validation_loss",
                condition=f"step={step}",
                pretraining_seed=p,
                value=7.0 - step / 200 + generator.normal() / 50,
                **own,
            )
            for p in (1, 2)
            for step in (0, 400, 800)
        ]
        observations.write(observations.FOLDER / f"pretraining-{operator}-tiny.csv", losses)
        tuned = [
            Observation(
                stage="finetuning",
                protocol="courtois2024",
                task=TASKS[column],
                evaluated_on=column,
                metric=metric,
                pretraining_seed=p,
                finetuning_seed=f,
                value=0.6 + generator.normal() / 50,
                n=200,
                **own,
            )
            for p in (1, 2)
            for f in (1, 2, 3)
            for column in columns
            for metric in scores.METRICS["courtois2024"][column]
        ]
        observations.write(observations.FOLDER / f"finetuning-courtois2024-{operator}-tiny.csv", tuned)
        write_robustness(own, generator)
        write_answers(own)


def write_answers(own: dict[str, str]) -> None:
    """Both metrics of one model on every task of question answering."""
    rows = [
        Observation(
            stage="question_answering",
            protocol="kowsher2025",
            task=task,
            evaluated_on=task[:6],
            metric=metric,
            pretraining_seed=p,
            finetuning_seed=1,
            value=0.5 + p / 100,
            n=200,
            **own,
        )
        for task in ("squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa")
        for p in (1, 2)
        for metric in ("exact_match", "f1")
    ]
    observations.write(observations.FOLDER / f"question_answering-{own['operator']}-tiny.csv", rows)


def write_robustness(own: dict[str, str], generator: np.random.Generator) -> None:
    """Accuracies of one model under two kinds of noise on one task, and of two tasks on each other."""
    cells = [
        ("noise", "sst2", "sst2", f"{kind}={level:g}", "accuracy")
        for kind, levels in (("noise", (0, 0.2, 0.4)), ("typos", (0.2, 0.4)))
        for level in levels
    ]
    cells += [
        ("cross_domain", trained, tested, None, metric)
        for trained in ("qqp", "mrpc")
        for tested in ("qqp", "mrpc")
        for metric in ("accuracy", "balanced_accuracy", "majority_accuracy")
    ]
    for stage in ("noise", "cross_domain"):
        rows = [
            Observation(
                stage=stage,
                protocol="courtois2024",
                task=task,
                evaluated_on=evaluated_on,
                condition=condition,
                metric=metric,
                pretraining_seed=p,
                finetuning_seed=1,
                value=0.6 + generator.normal() / 50,
                n=200,
                **own,
            )
            for p in (1, 2)
            for name, task, evaluated_on, condition, metric in cells
            if name == stage
        ]
        path = observations.FOLDER / f"{stage}-courtois2024-{own['operator']}-tiny.csv"
        observations.write(path, rows)


def write_inputs() -> None:
    """What the report reads beside the analysis, with text that would break an unescaped page."""
    for folder in ("filtered", "tokens", "tasks", "runs"):
        Path("data", folder).mkdir()
    Path("data/filtered/ledger.csv").write_text(
        "shard,fate,rule,reason,documents,bytes,all_documents,all_bytes\n"
        "part_1,in,,,10,100,10,100\ntotal,in,,,10,100,10,100\ntotal,kept,,,6,60,6,60\n"
        "total,not_selected,,,0,0,0,0\ntotal,dropped,category,adult,4,40,5,50\n"
    )
    split = {"documents": 3, "tokens": 200, "sequences": 3, "dropped_tokens": 8, "shards": []}
    index = {"sequence_length": 64, "vocabulary_size": 2000, "splits": {"train": split, "validation": split}}
    Path("data/tokens/index.json").write_text(json.dumps(index))
    Path("data/tasks/statistics.csv").write_text(
        "task,split,examples,available,reduced,subset,source,dropped,reason,majority_share\n"
        "qqp,train,800,900,True,True,<script>alert(1)</script> & 50% \\input{x},2,wrong number of columns,0.6\n"
        "stsb,train,800,800,False,False,embedded,0,,\n"
    )
    for number, stage in enumerate(("corpus", "filtering")):
        record = {"stage": stage, "seconds": 1.5, "started": "2026-01-01T00:00:00+00:00", "commit": "c" * 40}
        record |= {"packages": {"numpy": f"2.{number}"}, "cores": 2}
        Path(f"data/runs/{stage}.json").write_text(json.dumps(record))


def write_predictions(columns: tuple[str, ...]) -> None:
    """Twenty examples a column, and what six runs of every operator say of them."""
    generator = np.random.default_rng(2)
    names = [str(number) for number in range(20)]
    for column in columns:
        task, _, part = column.partition("_")
        split = {"m": "validation_matched", "mm": "validation_mismatched"}.get(part, "validation")
        Path("data/tasks", task).mkdir(exist_ok=True)
        table = pd.DataFrame({"example_id": names, "label": generator.integers(2, size=20)})
        table.to_parquet(f"data/tasks/{task}/{split}.parquet")
    for operator in OPERATORS:
        rows = [
            {"task": column.split("_")[0], "evaluated_on": column, "pretraining_seed": p, "finetuning_seed": f}
            | {"example_id": name, "prediction": float(generator.integers(2))}
            for column in columns
            for p in (1, 2)
            for f in (1, 2, 3)
            for name in names
        ]
        folder = Path(f"data/finetuning/courtois2024-{operator}-tiny")
        folder.mkdir(parents=True)
        pd.DataFrame(rows).to_parquet(folder / "predictions.parquet")


def make(folder: Path, monkeypatch, columns: tuple[str, ...] = scores.COLUMNS) -> Path:
    """Runs both stages in `folder`; gives its folder of reports."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["stage"])
    for name in ("data/published", "data/released", "reports/templates"):
        shutil.copytree(ROOT / name, folder / name)
    params = yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
    params |= {"operators": list(OPERATORS), "sizes": ["tiny"], "protocols": ["courtois2024"]}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    write_observations(columns)
    write_inputs()
    write_predictions(columns)
    analysis.main()
    report.main()
    return folder / "reports"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield make(tmp_path_factory.mktemp("run"), monkeypatch)


class Page(HTMLParser):
    """Collects what the tests ask about, and checks that elements close in order."""

    def __init__(self, text: str):
        super().__init__()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.open: list[str] = []
        self.headings: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs] or [(tag, "", None)]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs] or [(tag, "", None)]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def values(self, name: str) -> list[str]:
        return [value for _, key, value in self.attributes if key == name]


@pytest.fixture(scope="module")
def page(reports) -> Page:
    return Page((reports / "report.html").read_text())


def test_the_page_is_well_formed_and_its_identifiers_are_unique(page):
    assert page.open == []
    assert [name for name, count in Counter(page.values("id")).items() if count > 1] == []


def test_links_and_references_inside_the_page_lead_somewhere(page):
    ids = set(page.values("id"))
    inside = [link[1:] for link in page.values("href") + page.values("xlink:href") if link.startswith("#")]
    labels = [name for value in page.values("aria-labelledby") for name in value.split()]
    assert set(inside) | set(labels) <= ids


def test_the_page_needs_no_network(reports, page):
    tags = {tag for tag, _, _ in page.attributes}
    assert not tags & {"link", "img", "iframe"}
    assert ("script", "src") not in {(tag, key) for tag, key, _ in page.attributes}
    assert not any(re.match("https?:", link or "") for link in page.values("href") + page.values("src"))
    assert "@import" not in (reports / "report.html").read_text()


def test_files_that_the_page_links_to_are_there(reports, page):
    linked = [link for link in page.values("href") if not link.startswith("#")]
    assert linked and all((reports / link).exists() for link in linked)


def test_headings_do_not_skip_a_level(page):
    assert page.headings[0] == "h1" and set(page.headings[1:]) == {"h2"}


def test_data_cannot_become_markup(reports):
    text = (reports / "report.html").read_text()
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text
    assert r"\textbackslash{}input\{x\}" in (reports / "tables/tasks.tex").read_text()


def test_every_specified_table_and_figure_is_in_both_forms(reports, page):
    tables, figures = specifications.load()
    tex = (reports / "report.tex").read_text()
    assert set(tables) | set(figures) <= set(page.values("id"))
    for name in tables:
        assert f"tables/{name}.tex" in tex
    for name in figures:
        assert f"figures/{name}.pdf" in tex
        assert {path.suffix for path in (reports / "figures").glob(f"{name}.*")} == {".csv", ".svg", ".pdf"}


def test_figures_of_every_protocol_and_size_stand_where_the_layout_names_them(reports, page):
    names = {f"{name}-courtois2024-tiny" for name in ("noise_curves", "transfer_matrices")}
    assert names <= set(page.values("id"))
    assert all(f"figures/{name}.pdf" in (reports / "report.tex").read_text() for name in names)
    table = pd.read_csv(reports / "figures/transfer_matrices-courtois2024-tiny.csv")
    own = table[table["source"] == "reproduced"]
    assert list(dict.fromkeys(own["operator"])) == list(OPERATORS) and {"majority", "chance"} < set(own["trained"])


def test_scale_data_and_subsets_are_named(reports):
    text = (reports / "report.html").read_text()
    assert "Scale laptop: BERT-tiny on text and tasks generated by this repository" in text
    assert "Subsets stand in for the whole data of QQP" in text


def test_published_recomputed_and_reproduced_stand_together(reports):
    cells = pd.read_csv(reports / "tables/courtois2024_table3_glue.csv").set_index(["row", "column"])
    cell = cells.loc["base.pairwise", "glue_score"]
    assert (cell["printed"], round(cell["released"], 2), cell["verdict"]) == (
        "79.36 (0.37)",
        79.36,
        "not run at this scale",
    )
    own = cells.loc["tiny.shared", "glue_score"]
    assert own["reproduced_n"] == 2 and 50 < own["reproduced_mean"] < 70


def test_question_answering_is_reported_whatever_protocol_the_glue_tasks_have(reports):
    cells = pd.read_csv(reports / "tables/kowsher2024_arxiv_table2_squad.csv").set_index("row")
    for operator in OPERATORS:
        for condition in ("single", "triviaqa"):
            own = cells.loc[f"tiny.{operator}.{condition}"]
            assert len(own) == 6 and own["reproduced_mean"].to_numpy() == pytest.approx(51.5)


def test_metrics_are_few_and_by_operator(reports):
    metrics = json.loads((reports / "metrics.json").read_text())
    assert set(metrics) == set(OPERATORS)
    assert set(metrics["original"]["tiny"]) == {"parameters", "validation_loss", "courtois2024"}
    assert set(metrics["original"]["tiny"]["courtois2024"]) == {"glue_score"}


def test_plots_are_in_the_long_form(reports):
    loss = pd.read_csv(reports / "plots/pretraining_loss.csv")
    assert list(loss.columns) == ["operator", "size", "step", "validation_loss"]
    assert len(pd.read_csv(reports / "plots/glue.csv")) == 4 * 6


def test_the_same_inputs_give_the_same_bytes(reports, tmp_path, monkeypatch):
    again = make(tmp_path, monkeypatch)
    for path in sorted(reports.rglob("*")):
        other = again / path.relative_to(reports)
        if path.is_file() and path.name not in ("report.html", "environment.csv", "stages.csv", "stages.tex"):
            assert path.read_bytes() == other.read_bytes(), path.name


def test_files_of_operators_that_are_not_asked_for_are_left_alone(reports, monkeypatch):
    monkeypatch.chdir(reports.parent)
    (observations.FOLDER / "pretraining-removed-tiny.csv").write_text("not an observation")
    settings = report.load_settings()
    assert set(analysis.observed(settings)["operator"].dropna()) == set(OPERATORS)


def test_a_run_of_few_tasks_has_a_report_without_a_glue_score(tmp_path, monkeypatch):
    made = make(tmp_path, monkeypatch, columns=("sst2", "stsb"))
    metrics = json.loads((made / "metrics.json").read_text())
    assert set(metrics["shared"]["tiny"]["courtois2024"]) == {"sst2", "stsb"}
    assert "needs all tasks" in (made / "report.html").read_text()


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_latex_compiles_without_warnings(reports, tmp_path):
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={tmp_path}", "report.tex"]
    for _ in range(3):
        done = subprocess.run(command, cwd=reports, capture_output=True, text=True, errors="replace")
        assert done.returncode == 0, done.stdout[-3000:]
    log = (tmp_path / "report.log").read_text(errors="replace")
    assert not re.findall(r"^(?:LaTeX Warning|Overfull|! ).*", log, re.MULTILINE)


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_not_wider_than_the_screen(reports, tmp_path, width):
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe src="file://{reports / "report.html"}" style="width:{width}px;height:900px;border:0"></iframe>'
        "<script>onload = () => document.title = frames[0].document.documentElement.scrollWidth</script>"
    )
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars --disable-sync "
        "--disable-background-networking --disable-component-update --allow-file-access-from-files "
        f"--user-data-dir={tmp_path}/user"
    )
    command = ["chromium", *flags.split(), "--window-size=1600,1000", "--dump-dom", f"file://{frame}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert f"<title>{width}</title>" in done.stdout
