"""Analysis and report from observations to files, on made-up numbers."""

import json
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from math import nan
from pathlib import Path

import pandas as pd
import pytest

from stages.analysis import inputs
from stages.evidence import specifications
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.verdicts import AUDITED, Difference, Statement
from stages.files import observations
from stages.report import cards, differences, facts, first_screen, read_results
from stages.report.figures import Drawing
from stages.report.pages import find_items
from stages.report.paper_tables import merge_name
from stages.report.text_templates import read_content
from stages.schema import scales
from stages.schema.settings import load_settings
from tests.places import ROOT
from tests.toy_report import OPERATORS, make

PAGES = ("report", "claims", "audit", "appendix")
for_every_page = pytest.mark.parametrize("name", PAGES)
STUDY = ROOT / "reports/examples/own_score/8_tokens"
VOID = {"meta", "br", "link", "img"}
MOST_PAGES = 15
# bytes of an SVG, and points of its smallest font
LARGEST, SMALLEST = 60_000, 8


class Page(HTMLParser):
    """Holds the text, attributes and headings of a page, and checks that elements close in order."""

    def __init__(self, text: str):
        super().__init__()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.open: list[str] = []
        self.headings: list[str] = []
        self.text = text
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs] or [(tag, "", None)]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def values(self, name: str) -> list[str]:
        return [value or "" for _, key, value in self.attributes if key == name]


@pytest.fixture(scope="module")
def pages(reports) -> dict[str, Page]:
    return {name: Page((reports / f"{name}.html").read_text()) for name in PAGES}


@pytest.fixture
def in_the_run(reports, monkeypatch):
    monkeypatch.chdir(reports.parent)


def read_csv(reports: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(reports / f"tables/{name}.csv")


@for_every_page
def test_a_page_is_well_formed_with_unique_identifiers_and_headings_that_skip_no_level(pages, name):
    assert pages[name].open == []
    assert pages[name].headings[0] == "h1"
    assert set(pages[name].headings[1:]) <= {"h2"}
    assert max(Counter(pages[name].values("id")).values()) == 1


@for_every_page
def test_links_lead_to_places_and_files_that_are_there(reports, pages, name):
    labels = [f"#{label}" for label in pages[name].values("aria-labelledby")]
    references = [f"#{label}" for label in re.findall(r"url\(#(.+?)\)", pages[name].text)]
    for link in pages[name].values("href") + pages[name].values("xlink:href") + labels + references:
        if link.startswith("https:"):
            continue
        file, _, place = link.partition("#")
        if place:
            page = file.removesuffix(".html") or name
            assert place in pages[page].values("id"), link
        assert (reports / file).exists(), link


@for_every_page
def test_a_page_is_one_file_that_needs_no_network(pages, name):
    tags = {tag for tag, _, _ in pages[name].attributes}
    assert not tags & {"link", "iframe"}
    assert not pages[name].values("src")
    assert "@import" not in pages[name].text
    assert "<button" not in pages[name].text.split("<script>")[0]


def test_figures_have_the_colours_of_the_page(pages):
    page = pages["report"].text
    colours = set(re.findall(r"--(\w+):", page))
    for figure in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert "currentColor" in figure
        assert set(re.findall(r"var\(--(\w+)", figure)) <= colours
        assert not re.search(": (#24292f|#ffffff|#d5dade)", figure)


def test_every_figure_is_small_has_text_and_legible_fonts_and_no_reference_to_nothing(reports):
    files = list((reports / "figures").glob("*.svg"))
    assert {file.stem for file in files} >= {"saved_parameters", "score_differences"}
    for file in files:
        svg = file.read_text()
        assert len(svg) <= LARGEST, file.name
        assert "</text>" in svg
        assert min(float(size) for size in re.findall(r"font-size: ([\d.]+)", svg)) >= SMALLEST
        references = re.findall(r'(?:url\(#|href="#)([^")]*)', svg)
        assert set(references) == set(re.findall(r' id="([^"]*)"', svg))


def test_parts_without_a_number_of_this_run_are_listed_with_their_command(pages):
    page = pages["report"].text
    listed = page[page.index('<section id="not_run"') :]
    assert "dvc repro translation" in listed
    assert '<a href="report.html#' in listed
    assert 'id="sequence_tasks"' not in page


def test_the_first_screen_puts_what_papers_print_beside_what_this_run_found(reports, pages):
    rows = read_csv(reports, "first_screen")
    assert rows["operator"].drop_duplicates().tolist() == ["symmetric", "pairwise", "shared"]
    assert rows["column"].drop_duplicates().tolist() == ["saved", "score", "loss"]
    contrasts = pd.read_csv(reports.parent / "data/analysis/contrasts.csv")
    run = contrasts[(contrasts["at"] == GLUE_SCORE) & (contrasts["source"] == "reproduced")]
    score = rows[(rows["column"] == "score") & (rows["source"] == "reproduced")]
    assert score["verdict"].tolist() == run["verdict"].tolist()
    assert score["estimate"].tolist() == pytest.approx(run["estimate"].tolist())
    # two editions of a paper are two crosses; other models have no verdict
    printed = rows[(rows["source"] == "published") & (rows["column"] == "score")]
    assert printed["estimate"].tolist() == [-3.92, 0.62, 0.38, -0.05]
    assert rows.loc[rows["source"] != "reproduced", "verdict"].isna().all()
    for text in rows["text"]:
        assert f">{text}</text>" in pages["report"].text
    assert "Courtois et al. 2024, Table 3)</title>" in pages["report"].text


@pytest.mark.parametrize(("low", "high", "narrow"), [(-9.0, 9.0, True), (-15.0, 9.0, False)])
def test_a_column_with_a_range_is_shown_if_its_intervals_are_narrow(low, high, narrow):
    rows = pd.DataFrame({"source": "reproduced", "low": [low, -1.0], "high": [high, 1.0]})
    assert first_screen.is_narrow(rows, 100) == narrow


def test_steps_are_those_to_the_lowest_loss_that_most_operators_of_a_size_reach():
    levels = {"tiny": ["loss=5", "loss=3"] * 2, "base": ["loss=3", "loss=2.5"] * 2}
    steps = pd.DataFrame({"size": ["tiny"] * 4 + ["base"] * 4, "at": levels["tiny"] + levels["base"]})
    steps = steps.assign(source="reproduced", operator=["shared", "shared", "pairwise", "pairwise"] * 2)
    # pairwise of size tiny never reaches 3
    steps["low"] = [1.0, 2.0, 3.0, nan, 5.0, 6.0, 7.0, 8.0]
    found = differences.select_lowest_level(steps)
    assert found.groupby("size")["at"].unique().map(list).to_dict() == {"tiny": ["loss=5"], "base": ["loss=2.5"]}


def test_an_operator_of_the_user_is_described_by_equation_and_source(in_the_run):
    described = facts.describe_trained(
        load_settings().model_copy(update={"operators": ["original", "shared", "hadamard"]})
    )
    assert list(described) == ["shared", "hadamard"]
    assert described["shared"][0].startswith("queries, keys and values use one matrix")
    assert re.fullmatch(r".+ \(.+\)", described["hadamard"][0])


def test_the_note_on_the_plan_of_a_scale_stands_only_in_a_run_of_the_scale(in_an_empty_folder):
    text = scales.read("files")
    for content, found in ((text, True), (text.replace("workers: null", "workers: 1"), False)):
        Path("params.yaml").write_text(content)
        assert bool(facts.find_remark(load_settings(Path("params.yaml")))) == found


def test_the_differences_of_the_own_studies_are_those_of_their_tables():
    found = pd.read_csv(ROOT / "data/published/studies.csv")
    numbers = ["estimate", "low", "high"]
    assert set(found["study"]) == {"own_score"}
    table = pd.read_csv(STUDY / "contrasts.csv").query("reference == 'original'")
    at = {"learns": "loss=5.5", "loss": "validation_loss"}
    for question, rows in found.groupby("question"):
        expected = table[table["at"] == at[question]].set_index("arm").loc[rows["operator"], numbers]
        assert rows[numbers].to_numpy() == pytest.approx(expected.to_numpy())


def test_claims_and_audit_show_their_totals_as_bars_and_a_table(pages):
    assert {"claim_bars", "claim_totals"} <= set(pages["report"].values("id"))
    text = pages["audit"].text
    assert text.index('id="audit_bars"') < text.index('id="audit"')


def test_every_claim_is_counted_once_by_ledger_and_a_partly_right_claim_is_not_false(reports):
    totals = read_csv(reports, "claim_totals").pivot_table("estimate", "ledger", "word", aggfunc="sum")
    claims = pd.read_csv(reports.parent / "data/analysis/claims.csv").drop_duplicates("id")
    audited = totals.loc["Audit"]
    assert audited.sum() == len(claims)
    for statement in (Statement.HOLDS, Statement.PARTLY, Statement.UNSUPPORTED, Statement.FAILS):
        assert audited[AUDITED.get(statement, statement)] == (claims["numbers"] == statement).sum()
    # “holds” is a word for this run and for released results
    assert Statement.HOLDS in totals
    assert pd.isna(audited[Statement.HOLDS])


@pytest.mark.parametrize(
    ("name", "ledger", "column"),
    [
        ("audit", "data/audit/checks.csv", "check"),
        ("claims", "data/analysis/claims.csv", "id"),
    ],
)
def test_every_check_and_claim_has_a_place_that_links_can_lead_to(reports, pages, name, ledger, column):
    rows = pd.read_csv(reports.parent / ledger)
    assert set(rows[column]) <= set(pages[name].values("id"))
    # a browser unfolds an entry for a link if the place of the link is inside
    for entry in rows[column]:
        assert re.search(rf'</summary>\s*<dl id="{re.escape(entry)}">', pages[name].text)


def test_data_cannot_become_markup(reports, pages, in_the_run):
    text = pages["appendix"].text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert r"\textbackslash{}input\{x\}" in (reports / "tables/tasks.tex").read_text()
    settings = load_settings()
    described = settings.report.model_copy(update={"data": "<script>x</script> | B & A's *own*"})
    for _, card in cards.render_cards(settings.model_copy(update={"report": described})):
        assert r"\<script\>x\</script\> \| B \& A's \*own\*" in card
        assert "`data/pretraining/" in card


def test_every_specified_table_and_figure_is_in_both_forms(reports, pages):
    tables = specifications.load()
    shown = {name for page in pages.values() for name in page.values("id")}
    tex = (reports / "report.tex").read_text()
    for name, table in tables.items():
        # a table of two editions is shown once, named like the later
        places = {merge_name(name), merge_name(table.edition)} if table.edition else {name}
        assert places & shown
        assert any(f"tables/{place}.tex" in tex for place in places)
        assert {path.suffix for path in (reports / "tables").glob(f"{name}.*")} == {".csv", ".tex"}
    for name, entry in read_content("figures").items():
        if "place" not in entry:
            continue
        assert name in shown
        assert f"figures/{name}.pdf" in tex
        assert {path.suffix for path in (reports / "figures").glob(f"{name}.*")} == {".csv", ".svg", ".pdf"}
    assert not re.findall(r"U\+[0-9A-F]{4}", tex)


def test_published_recomputed_and_reproduced_stand_together(reports):
    cells = read_csv(reports, "courtois2024_table3_glue").set_index(["row", "column"])
    cell = cells.loc["base.pairwise", "glue_score"]
    assert (cell["printed"], round(cell["released"], 2)) == ("79.36 (0.37)", 79.36)
    assert cell["verdict"] == Difference.NOT_RUN
    own = cells.loc["tiny.shared", "glue_score"]
    assert own["reproduced_n"] == 2 and 50 < own["reproduced_mean"] < 70


def test_question_answering_is_reported_whatever_protocol_the_glue_tasks_have(reports):
    cells = read_csv(reports, "kowsher2024_arxiv_table2_squad").set_index("row")
    for operator in OPERATORS:
        for condition in ("single", "triviaqa"):
            own = cells.loc[f"tiny.{operator}.{condition}"]
            assert len(own) == 6 and own["reproduced_mean"].between(50, 70).all()


def test_metrics_are_few_and_by_operator(reports):
    metrics = json.loads((reports / "metrics.json").read_text())
    assert set(metrics) == set(OPERATORS)
    assert set(metrics["original"]["tiny"]) == {"parameters", "validation_loss", "courtois2024"}
    judged = metrics["pairwise"]["tiny"]["courtois2024"]["glue_score_against_original"]
    assert set(judged) == {"difference", "low", "high", "verdict"}
    few = metrics["shared"]["tiny"]["validation_loss_against_original"]
    assert set(few) == {"difference", "verdict"}
    assert few["verdict"] == Difference.TOO_FEW


def test_neither_a_copied_file_of_observations_nor_one_of_another_operator_is_counted(in_the_run):
    before = inputs.read_observations(load_settings())
    assert {"noise", "question_answering"} <= set(before["stage"])
    for path in list(observations.FOLDER.glob("*.csv")):
        shutil.copyfile(path, path.with_name(f"{path.stem} (copy).csv"))
    path = observations.find_file("pretraining")
    path.write_text(path.read_text() + "pretraining,validation_loss,1.0,removed,tiny,,,,step=0,1,,\n")
    pd.testing.assert_frame_equal(inputs.read_observations(load_settings()), before)


@pytest.mark.nightly
def test_a_run_of_few_tasks_has_a_report_without_a_glue_score(tmp_path, monkeypatch):
    made = make(tmp_path, monkeypatch, columns=("sst2", "stsb"))
    metrics = json.loads((made / "metrics.json").read_text())
    judged = {"sst2_against_original", "stsb_against_original"}
    assert set(metrics["shared"]["tiny"]["courtois2024"]) == {"sst2", "stsb"} | judged
    assert (made / "report.html").exists()


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_latex_compiles_to_few_pages(reports, tmp_path):
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={tmp_path}", "report"]
    for _ in range(3):
        done = subprocess.run(command, cwd=reports, capture_output=True, text=True, errors="replace")
        assert done.returncode == 0, done.stdout[-3000:]
    log = (tmp_path / "report.log").read_text(errors="replace")
    assert "undefined references" not in log
    assert int(re.findall(r"\((\d+) pages", log)[0]) <= MOST_PAGES


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"files": {}, "place": "Table 1"}, False),
        ({"measured": False}, False),
        ({}, True),
    ],
)
def test_a_figure_is_shown_if_it_is_drawn_and_has_a_number_of_ours_or_of_a_paper(fields, shown):
    plain = {
        "name": "f",
        "title": "",
        "stage": "tasks",
        "alternative": "",
        "files": {"svg": b""},
        "csv": pd.DataFrame(),
    }
    drawn = Drawing(**{**plain, **fields})
    assert drawn.shown == shown


@pytest.mark.parametrize("kind", ["table", "figure"])
def test_a_table_or_figure_that_has_no_entry_names_file_and_fix(kind):
    section = {"id": "s", "tables": [], "figures": []} | {f"{kind}s": ["x"]}
    with pytest.raises(ValueError, match=rf"sections.yaml: section s lists an unknown {kind} 'x'; add .*{kind}s.yaml"):
        find_items(section, {}, {})


def test_the_schema_of_results_names_every_column():
    columns = []
    for line in (ROOT / "reports/templates/results.md").read_text().splitlines():
        if line.startswith("| `"):
            columns += re.findall("`(.+?)`", line.split("|")[1])
    assert columns == list(observations.COLUMNS)


def test_the_environment_lists_every_value_once():
    runs = [
        {"stage": "corpus", "commit": "c", "packages": {"numpy": "2.0"}, "read": ["a", "b"]},
        {"stage": "tasks", "commit": "c", "packages": {"numpy": "2.1", "torch": "2.13"}},
    ]
    found = read_results.list_environment(runs).set_index("fact")["value"].to_dict()
    assert found == {"Commit": "c", "numpy": "2.0; 2.1", "torch": "2.13", "Read by corpus": "a; b"}
