"""The pages of the studies: their numbers follow from the observations beside them."""

from pathlib import Path

import pytest

from stages.report.tables import csv_of
from stages.tools import pages

ROOT = Path(__file__).parents[1]
STUDIES = sorted(
    path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "reports/examples").rglob("analysis.yaml")
)


@pytest.mark.parametrize("study", STUDIES)
def test_the_comparisons_of_a_study_follow_from_its_observations(study, monkeypatch):
    monkeypatch.chdir(ROOT)
    for name, frame in pages.judge(Path(study)).items():
        written = csv_of(frame)
        committed = (ROOT / study / f"{name}.csv").read_text(encoding="utf-8")
        assert (written if isinstance(written, str) else written.decode()) == committed, name


def test_the_comparisons_of_the_released_results_follow_from_them(monkeypatch):
    monkeypatch.chdir(ROOT)
    written = csv_of(pages.judge_released())
    committed = (ROOT / "reports/examples/released.csv").read_text(encoding="utf-8")
    assert (written if isinstance(written, str) else written.decode()) == committed


@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_is_the_rendering_of_its_template(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert pages.render(page) == (ROOT / pages.PAGES[page]).read_text(encoding="utf-8")


def test_a_comparison_that_a_study_lacks_is_an_error_that_names_it(monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(ValueError, match=r"english/contrasts\.csv: 0 rows with .*'nothing'"):
        pages.look_up_contrast("english", "nothing", "loss=5.5")
