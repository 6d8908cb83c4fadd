"""Analysis and report from observations to files, on made-up numbers."""

import json
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure

from stages.__main__ import main as run_stage
from stages.analysis import inputs
from stages.analysis.claims import WORST_FIRST
from stages.evidence import baselines, specifications
from stages.evidence.statistics import TOO_FEW
from stages.files import observations
from stages.report import answer_figure, cards, drawing, figures, first_screen, frames, verdicts
from stages.report import inputs as read
from stages.report.drawing import Drawing
from stages.report.pages import pages as laid_out
from stages.report.paper_tables import merged_name
from stages.report.stage import PRINTED
from stages.report.words import sentence
from stages.schema import scales
from stages.schema.settings import load_settings
from stages.translation.stage import SEQUENCES
from tests.toy_report import OPERATORS, make

ROOT = Path(__file__).parents[1]
PAGES = ("report", "claims", "audit", "appendix")
VOID = {"meta", "path", "use", "rect", "br", "link", "img"}
MAIN_WORDS = 8000  # that the main part may have
TRANSFER = "#transfer_matrices-courtois2024-tiny"


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
        self.words = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs] or [(tag, "", None)]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style", "svg", "details", "title"} & set(self.open):
            self.words += len(data.split())

    def values(self, name: str) -> list[str]:
        return [value for _, key, value in self.attributes if key == name]


@pytest.fixture(scope="module")
def pages(reports) -> dict[str, Page]:
    return {name: Page((reports / f"{name}.html").read_text()) for name in PAGES}


@pytest.fixture(scope="module")
def page(pages) -> Page:
    return pages["report"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed_with_unique_identifiers_and_headings_that_skip_no_level(pages, name):
    assert pages[name].open == []
    assert pages[name].headings[0] == "h1" and set(pages[name].headings[1:]) <= {"h2"}
    assert [name for name, count in Counter(pages[name].values("id")).items() if count > 1] == []


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_places_and_files_that_are_there(reports, pages, name):
    page, own = pages[name], f"{name}.html"
    links = page.values("href") + page.values("xlink:href") + [f"#{label}" for label in page.values("aria-labelledby")]
    for link in links:
        file, _, place = link.partition("#")
        if link.startswith("https:"):
            continue
        assert not place or place in pages[(file or own).removesuffix(".html")].values("id"), link
        assert not file or (reports / file).exists(), link


@pytest.mark.parametrize("name", PAGES)
def test_a_page_needs_no_network(reports, pages, name):
    tags = {tag for tag, _, _ in pages[name].attributes}
    assert not tags & {"link", "img", "iframe"}
    assert ("script", "src") not in {(tag, key) for tag, key, _ in pages[name].attributes}
    loaded = [
        value for tag, key, value in pages[name].attributes if tag != "a" and key in ("href", "src", "xlink:href")
    ]
    assert not any(re.match("https?:", link or "") for link in loaded)
    assert "@import" not in (reports / f"{name}.html").read_text()


def test_the_main_part_is_short(page):
    assert page.words < MAIN_WORDS


def test_the_first_screen_has_a_row_an_operator_with_a_verdict_its_number_and_a_link(reports):
    text = (reports / "report.html").read_text()
    summary = text[text.index('id="summary"') : text.index('id="contents"')]
    rows = {row.split("<")[0].split(">")[1]: row for row in summary.split('<th class="name"')[1:]}
    assert list(rows) == ["pairwise", "symmetric", "shared"]
    words = {name: " ".join(re.sub("<[^>]+>", "", row[row.index("<td") :]).split()) for name, row in rows.items()}
    words = {name: said.replace("\N{NO-BREAK SPACE}", " ") for name, said in words.items()}
    assert "saves parameters 5.9 % of BERT-base" in words["pairwise"]
    released = "released: no difference shown +0.63 points (−0.32 to 1.57) at BERT-base; scores higher +0.66"
    assert released in words["pairwise"]
    assert "released: scores lower −3.92 points (−4.86 to −2.98) at BERT-base" in words["symmetric"]
    assert "released: no raw results" in words["shared"]
    assert "own study: learns later +294 steps (263 to 324)" in words["shared"]
    studies = "own study: learns later +129 steps (73 to 185) with 2 layers on generated text; no difference shown +142"
    assert studies in words["pairwise"]  # a verdict stands where it changes
    no_interval = r"this run: too few seeds [−+][\d.]+ points at BERT-tiny"  # two seeds: no interval, either
    assert re.search(no_interval, words["shared"])
    for address in (
        "#courtois2024_table2_model_parameters",
        "#against_original",
        "#loss_differences",
        "#studies",
        TRANSFER,
    ):
        assert f'href="{address}"' in rows["pairwise"]


def test_the_first_screen_has_at_most_six_sentences(reports):
    text = (reports / "report.html").read_text()
    assert 3 <= text[text.index('id="summary"') : text.index('id="contents"')].count("<li>") <= 6
    assert "its text and tasks are generated by this repository" in text


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ([False, False, False, False], []),
        ([None, None, None, None], ["it has no constant answer to tell whether its scores are above chance"]),
        (
            [None, False, False, False],
            ["it has no constant answer to tell whether some of its scores are above chance"],
        ),
        (
            [True, None, False, False],
            ["whether some of its scores are above chance", "1 of its 4 GLUE scores are at chance"],
        ),
    ],
)
def test_a_score_that_may_be_at_chance_is_told_and_leaves_all_of_the_run_undrawn(reports, monkeypatch, marks, told):
    monkeypatch.chdir(reports.parent)
    settings, summaries = load_settings(), read.summaries().astype({"at_chance": object})
    scores = (summaries["evaluated_on"] == "glue_score") & (summaries["metric"] == "score")
    summaries.loc[scores, "at_chance"] = marks
    said = sentence("cannot", **first_screen.of_run(settings, summaries))
    assert all(words in said for words in told) and said.count("chance") == len(told)
    assert ("reproduced" in set(answer_figure.answer(summaries, settings).csv["source"])) == (not told)


@pytest.mark.parametrize(
    ("verdicts", "words", "number"),
    [
        (["inconclusive"] * 3, "no difference shown", "on any of 2 tasks"),
        (["different", "different", "inconclusive"], "loses more to noise", "on 1 of 2 tasks"),
        (["at chance", TOO_FEW, TOO_FEW], TOO_FEW, ""),
    ],
)
def test_the_verdict_on_noise_counts_tasks_and_not_splits(verdicts, words, number):
    directions = ["higher" if verdict == "different" else "" for verdict in verdicts]
    places = {"at": ["mnli_m", "mnli_mm", "qqp"], "estimate": [1.0, 2.0, 0.5]}
    [entry] = first_screen._noise(pd.DataFrame(places | {"verdict": verdicts, "direction": directions}))
    assert entry.words == words and entry.number.startswith(number)


def test_a_verdict_on_transfer_leads_to_the_figure_of_the_size_that_it_is_about(reports, monkeypatch):
    monkeypatch.chdir(reports.parent)
    models = [(p, s, o) for p in ("kowsher2025", "courtois2024") for s in ("mini", "tiny") for o in OPERATORS]
    rows = pd.DataFrame(models, columns=["protocol", "size", "operator"]).assign(metric="elsewhere", mean=0.5)
    monkeypatch.setattr(frames, "transfer", lambda _: rows)
    asked = {"sizes": ["tiny", "mini"], "protocols": ["courtois2024", "kowsher2025"]}
    for row in first_screen.matrix(load_settings().model_copy(update=asked), read.summaries()):
        assert [entry.place for entry in row["cells"]["transfer"]] == ["transfer_matrices-courtois2024-mini"]


@pytest.mark.parametrize(
    ("verdict", "direction", "found"),
    [
        ("different", "lower", "lower"),
        ("one checkpoint per arm", "lower", "lower"),
        ("inconclusive", "", "undecided"),
        (TOO_FEW, "", TOO_FEW),
        ("at chance", "", "at chance"),
    ],
)
def test_a_direction_is_said_only_where_it_is_shown_from_enough_seeds_above_chance(verdict, direction, found):
    assert read.finding({"verdict": verdict, "direction": direction}) == found


def test_the_numbers_of_the_own_studies_are_those_of_their_tables():
    told = pd.read_csv(ROOT / "data/published/studies.csv")
    for study, own in told.groupby("study"):
        folder = ROOT / "reports/examples" / study / "tables"
        if study in ("english", "files"):
            found = pd.read_csv(folder.with_name("contrasts.csv")).query("reference == 'original'")
            found = found[found["at"] == {"english": "loss=5.5", "files": "glue_score"}[study]]
        else:
            found = pd.read_csv(folder / "plateau_tests.csv").query("question == 'operator' and place.isna()")
            found = found.rename(columns={"term": "arm", "difference": "estimate"})
        numbers = ["estimate", "low", "high"]
        told_of = own.set_index("operator")[numbers]
        assert told_of.to_numpy() == pytest.approx(found.set_index("arm").loc[told_of.index, numbers].to_numpy())


def test_what_this_run_found_is_not_told_again_as_an_own_study(monkeypatch):
    told = pd.read_csv(ROOT / "data/published/studies.csv")
    run = told[told["study"] == "files"].assign(source="reproduced")
    for found, without in ((run, {"files"}), (run.assign(low=run["low"] - 0.01), set())):
        monkeypatch.setattr(read, "read", lambda _, found=found: found)
        assert set(read.studies()["study"]) == set(told["study"]) - without


def test_a_sentence_that_many_cells_of_the_ledger_share_stands_once_in_the_head(reports):
    text = (reports / "claims.html").read_text()
    assert text.count("speaks for itself and not for its operator") == 1


def test_claims_and_audit_open_with_their_totals_by_source(reports):
    for page, name, ledger in (("claims", "claim_totals", "claims"), ("audit", "audit_totals", "audit")):
        text = (reports / f"{page}.html").read_text()
        assert text.index(f'id="{name}"') < text.index(f'id="{ledger}"')
    totals = pd.read_csv(reports / "tables/claim_totals.csv")
    assert (totals["claims"] == totals[[*verdicts.DECIDED, "open"]].sum(axis=1)).all()
    claims = pd.read_csv(reports.parent / "data/analysis/claims.csv").drop_duplicates("id")
    audited = totals[totals["ledger"] == "Audit"]
    assert audited["claims"].sum() == len(claims)
    assert audited["found_false"].sum() == (claims["numbers"] == "fails").sum()


def test_a_claim_is_counted_as_false_only_if_its_verdict_says_so():
    listed = {verdict: column for column, kinds in verdicts.DECIDED.items() for verdict in kinds}
    ledger = pd.DataFrame({"id": WORST_FIRST, "paper": "aop", "ledger": "counts", "numbers": WORST_FIRST})
    ledger = ledger.assign(verdict=WORST_FIRST, numbers_because="", reading="", unit_of_inference="")
    [counted] = verdicts.claim_totals(ledger).to_dict("records")
    expected = Counter(listed.get(verdict, "open") for verdict in WORST_FIRST)
    assert {name: counted[name] for name in expected} == expected
    assert counted["claims"] == len(WORST_FIRST) and counted["found_false"] == 2
    assert {listed[name] for name in ("partly", "unsupported", "truncated")} == {"partly", "unsupported", "truncated"}


def test_every_check_and_claim_has_a_place_that_links_can_lead_to(reports, pages):
    checks = pd.read_csv(reports.parent / "data/audit/checks.csv")["check"]
    claims = pd.read_csv(reports.parent / "data/analysis/claims.csv")["id"]
    assert set(checks) <= set(pages["audit"].values("id")) and set(claims) <= set(pages["claims"].values("id"))
    assert any((link or "").startswith("audit.html#") for link in pages["claims"].values("href"))


def test_data_cannot_become_markup(reports):
    text = (reports / "appendix.html").read_text()
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text
    assert r"\textbackslash{}input\{x\}" in (reports / "tables/tasks.tex").read_text()


def test_text_of_the_settings_cannot_become_markup_of_a_model_card():
    settings = load_settings(ROOT / "params.yaml")
    settings = settings.model_copy(update={"report": settings.report.model_copy(update={"data": "<script>x</script>"})})
    columns = ["operator", "size", "metric", "mean", "stage", "evaluated_on", "at_chance", "words_and_overlap"]
    made = cards.cards(settings, pd.DataFrame(columns=columns))
    assert all("&lt;script&gt;" in card and "<script" not in card for card in made.values())


def test_every_specified_table_and_figure_is_in_both_forms_and_every_symbol_has_a_sign_in_print(reports, pages):
    tables, figures = specifications.load()
    tex = "".join((reports / f"{name}.tex").read_text(encoding="utf-8") for name in PRINTED)
    assert not re.findall(r"U\+[0-9A-F]{4}", tex)
    shown = {name for page in pages.values() for name in page.values("id")}
    assert {merged_name(name) for name in tables if name.startswith("kowsher2025") and tables[name].edition} <= shown
    assert {name for name in tables if not tables[name].edition} | set(figures) <= shown
    for name in tables:
        assert {path.suffix for path in (reports / "tables").glob(f"{name}.*")} == {".csv", ".tex"}
    for name in figures:
        assert f"figures/{name}.pdf" in tex
        assert {path.suffix for path in (reports / "figures").glob(f"{name}.*")} == {".csv", ".svg", ".pdf"}


def test_figures_of_every_protocol_and_size_stand_where_the_layout_names_them(reports, page):
    names = {f"{name}-courtois2024-tiny" for name in ("noise_curves", "transfer_matrices")}
    assert names <= set(page.values("id"))
    assert all(f"figures/{name}.pdf" in (reports / "report.tex").read_text() for name in names)
    table = pd.read_csv(reports / "figures/transfer_matrices-courtois2024-tiny.csv")
    own = table[table["source"] == "reproduced"]
    assert list(dict.fromkeys(own["operator"])) == list(OPERATORS) and "majority" in set(own["trained"])


def test_scale_data_and_subsets_are_named(reports):
    for name in PAGES:
        text = (reports / f"{name}.html").read_text()
        assert "Scale laptop: BERT-tiny (2 layers, width 128) on text and tasks generated by this repository" in text
    text = (reports / "report.html").read_text()
    assert "Subsets stand in for the whole data of QQP" in text


def test_published_recomputed_and_reproduced_stand_together(reports):
    cells = pd.read_csv(reports / "tables/courtois2024_table3_glue.csv").set_index(["row", "column"])
    cell = cells.loc["base.pairwise", "glue_score"]
    assert (cell["printed"], round(cell["released"], 2)) == ("79.36 (0.37)", 79.36)
    assert cell["verdict"] == "not run at this scale"
    own = cells.loc["tiny.shared", "glue_score"]
    assert own["reproduced_n"] == 2 and 50 < own["reproduced_mean"] < 70


def test_question_answering_is_reported_whatever_protocol_the_glue_tasks_have(reports):
    cells = pd.read_csv(reports / "tables/kowsher2024_arxiv_table2_squad.csv").set_index("row")
    for operator in OPERATORS:
        for condition in ("single", "triviaqa"):
            own = cells.loc[f"tiny.{operator}.{condition}"]
            assert len(own) == 6 and own["reproduced_mean"].to_numpy() == pytest.approx(51.5)


def test_times_to_losses_are_tested_and_drawn_with_the_power_beside(reports):
    page = (reports / "report.html").read_text()
    for name in ("loss_differences", "milestone_tests", "waiting"):
        assert f'id="{name}"' in page
    tested = pd.read_csv(reports / "tables/milestone_tests.csv")
    assert set(tested["source"]) == {"reproduced"} and set(tested["arm"]) == {"symmetric", "pairwise"}
    losses = pd.read_csv(reports / "tables/loss_differences.csv").set_index("arm")
    assert losses["detectable"].notna().to_dict() == {"symmetric": True, "pairwise": True, "shared": False}
    assert "would be detected with 80 % power" in page.replace("\N{NO-BREAK SPACE}", " ")


def test_metrics_are_few_and_by_operator(reports):
    metrics = json.loads((reports / "metrics.json").read_text())
    assert set(metrics) == set(OPERATORS)
    assert set(metrics["original"]["tiny"]) == {"parameters", "validation_loss", "courtois2024"}
    assert set(metrics["original"]["tiny"]["courtois2024"]) == {"glue_score"}
    judged = metrics["pairwise"]["tiny"]["courtois2024"]["glue_score_against_original"]
    assert set(judged) == {"difference", "low", "high", "verdict"} and judged["low"] < judged["difference"]
    few = metrics["shared"]["tiny"]["validation_loss_against_original"]
    assert set(few) == {"difference", "verdict"} and few["verdict"] == "too few seeds"


def test_plots_are_in_the_long_form(reports):
    loss = pd.read_csv(reports / "plots/pretraining_loss.csv")
    assert list(loss.columns) == ["operator", "size", "step", "validation_loss"]
    assert len(pd.read_csv(reports / "plots/glue.csv")) == (3 * 3 + 2) * 3


def test_the_same_inputs_give_the_same_bytes(reports, tmp_path, monkeypatch):
    again = make(tmp_path, monkeypatch)
    for path in sorted(reports.rglob("*")):
        other = again / path.relative_to(reports)
        if path.is_file() and path.name not in ("appendix.html", "environment.csv", "stages.csv", "stages.tex"):
            assert path.read_bytes() == other.read_bytes(), path.name


def test_rows_of_operators_that_are_not_asked_for_are_left_alone(reports, monkeypatch):
    monkeypatch.chdir(reports.parent)
    path = observations.FOLDER / "pretraining.csv"
    path.write_text(path.read_text() + "pretraining,validation_loss,1.0,removed,tiny,,,,step=0,1,,\n")
    settings = load_settings()
    trained = inputs.observed(settings)["operator"].dropna()
    assert set(trained) - set(baselines.LABELS) == set(OPERATORS)


def test_a_copied_file_of_observations_is_not_counted_twice(reports, monkeypatch):
    monkeypatch.chdir(reports.parent)
    before = inputs.observed(load_settings())
    assert {"noise", "question_answering"} <= set(before["stage"])
    for path in list(observations.FOLDER.glob("*.csv")):
        shutil.copyfile(path, path.with_name(f"{path.stem} (copy).csv"))
    pd.testing.assert_frame_equal(inputs.observed(load_settings()), before)


def test_a_run_of_few_tasks_has_a_report_without_a_glue_score(tmp_path, monkeypatch):
    made = make(tmp_path, monkeypatch, columns=("sst2", "stsb"))
    metrics = json.loads((made / "metrics.json").read_text())
    judged = {"sst2_against_original", "stsb_against_original"}
    assert set(metrics["shared"]["tiny"]["courtois2024"]) == {"sst2", "stsb"} | judged
    assert "not fine-tuned on every task" in (made / "report.html").read_text()


@pytest.mark.parametrize("scale", scales.names())
def test_a_tiny_run_has_a_report_under_the_settings_of_every_scale(reports, tmp_path, monkeypatch, scale):
    shutil.copytree(reports.parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    tiny = yaml.safe_load(Path("params.yaml").read_text())["models"]["tiny"] | {"positions": 512}
    params = yaml.safe_load(scales.read(scale))
    params |= {"operators": list(OPERATORS), "sizes": ["tiny"], "models": params["models"] | {"tiny": tiny}}
    params["analysis"]["pairs"] = []  # of operators that this run lacks
    Path("params.yaml").write_text(yaml.safe_dump(params))
    run_stage(["report"])
    assert f"Scale {scale}: BERT-tiny" in (tmp_path / "reports/report.html").read_text()


@pytest.mark.parametrize("page", ["report", "appendix"])
def test_a_figure_with_nothing_to_draw_stands_on_no_page(page):
    empty, drawn = (
        Drawing(name=name, title="", stage="tasks", alternative="", files={}, pieces=pieces, csv=pd.DataFrame())
        for name, pieces in (("empty", ()), ("drawn", (b"<svg/>",)))
    )
    section = {"id": "data", "title": "Data", "text": [], "tables": [], "figures": ["empty", "drawn"]}
    made = laid_out({"pages": [{"file": page, "sections": [section]}]}, {}, {"empty": empty, "drawn": drawn}, {})
    assert [item.name for part in made[0]["sections"] for item in part["shown"]] == ["drawn"]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
@pytest.mark.parametrize(("name", "most"), [("report", 30), ("supplement", 90)])
def test_the_latex_compiles_without_warnings_to_few_pages(reports, tmp_path, name, most):
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={tmp_path}", f"{name}.tex"]
    for _ in range(3):
        done = subprocess.run(command, cwd=reports, capture_output=True, text=True, errors="replace")
        assert done.returncode == 0, done.stdout[-3000:]
    log = (tmp_path / f"{name}.log").read_text(errors="replace")
    assert not re.findall(r"^(?:LaTeX Warning|Overfull|! ).*", log, re.MULTILINE)
    assert int(re.search(r"\((\d+) pages", log)[1]) <= most


def test_the_note_on_intervals_has_its_number_of_seeds_from_the_rule():
    text = sentence("answer_note", simultaneous="simultaneous 95 %", reproduced=True, generated=False, fewest=7, p="")
    assert "fewer than seven seeds has no interval" in text


def described() -> dict[str, set[str]]:
    """The columns of results.parquet that its schema has, and the names that it gives of the values of each."""
    lines = (ROOT / "reports/templates/results.md").read_text().splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `")]
    named = [(re.findall("`(.+?)`", row[1]), set(re.findall("`(.+?)`", row[3]))) for row in rows]
    return {column: values for columns, values in named for column in columns}


def test_the_schema_of_results_names_every_column_every_stage_that_writes_and_every_size_outside_models():
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    writing = {name for name, stage in stages.items() if "data/observations/" in str(stage["outs"])}
    sizes = {SEQUENCES, *load_settings(ROOT / "stages/scales/laptop.yaml").translation.protocols}
    found = described()
    assert list(found) == list(observations.COLUMNS)
    assert {"baselines", "translation"} < writing <= found["stage"]
    assert sizes <= found["size"]


def test_a_legend_of_long_names_fits_into_its_figure():
    frame = pd.DataFrame({"x": [0, 1]})
    names = [f"an operator whose name is quite long, number {number}" for number in range(6)]

    def draw(axes, rows):
        for name in names:
            axes.plot(rows["x"], rows["x"], label=name)

    whole, handles = drawing._figure([("", frame)] * 2, draw, 3.3, 2.7)
    drawing._add_legend(whole, handles, 2)
    extent = whole.legends[0].get_window_extent()
    assert len(whole.legends) == 1 and extent.width <= whole.bbox.width


@pytest.mark.parametrize(("ends", "insets"), [((1.0, 1.1), 1), ((1.0, 6.0), 0)])
def test_an_inset_of_late_losses_is_left_out_where_it_would_lie_on_a_curve(ends, insets):
    steps = [0, 100, 200, 300, 400]
    frame = pd.DataFrame(
        {"operator": operator, "step": step, "mean": 7.0 if step == 0 else end, "minimum": end, "maximum": end, "n": 1}
        for operator, end in zip(("original", "pairwise"), ends, strict=True)
        for step in steps
    )
    axes = Figure().subplots()
    figures.losses(axes, frame)
    assert len(axes.child_axes) == insets
