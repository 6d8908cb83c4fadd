"""The pages of the studies: their numbers follow from the observations beside them."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from stages.masked_lm.corpus import Corpus
from stages.plumbing.settings import load_settings
from stages.plumbing.training_sections import Variant
from stages.report.tables import csv_of
from stages.tools import first_self_weight, pages
from tests.toy import LENGTH, packed

ROOT = Path(__file__).parents[1]
STUDIES = sorted(
    path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "reports/examples").rglob("analysis.yaml")
)


@pytest.mark.parametrize("study", STUDIES)
def test_the_comparisons_of_a_study_follow_from_its_observations(study, monkeypatch):
    monkeypatch.chdir(ROOT)
    for name, frame in pages.judge(Path(study)).items():
        assert csv_of(frame) == (ROOT / study / f"{name}.csv").read_text(encoding="utf-8"), name


TABLES = {
    "released.csv": pages.judge_released,
    "english/runs.csv": pages.list_rates,
    "self_score/relative_delays.csv": pages.compare_relative_delays,
}


@pytest.mark.parametrize("path", TABLES)
def test_a_table_of_a_page_follows_from_observations(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    committed = (ROOT / "reports/examples" / path).read_text(encoding="utf-8")
    assert csv_of(TABLES[path]()) == committed


def test_relative_delays_are_geometric_means_of_ratios_by_seed_compared_by_welchs_test(monkeypatch):
    monkeypatch.chdir(ROOT)
    short, long = (
        pages.list_runs(pages.SELF_SCORE / f"{tokens}_tokens", 5.5).set_index(["arm", "seed"])["step"]
        for tokens in (8, 16)
    )
    logarithms = [np.log(steps["symmetric"] / steps["original"]) for steps in (short, long)]
    frame = pages.compare_relative_delays().set_index("tokens")
    assert frame.loc["8", "ratio"] == pytest.approx(np.exp(logarithms[0].mean()))
    assert frame.loc["16 / 8", "ratio"] == pytest.approx(np.exp(logarithms[1].mean() - logarithms[0].mean()))
    expected = stats.ttest_ind(logarithms[1], logarithms[0], equal_var=False)
    assert frame.loc["16 / 8", "p"] == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_is_the_rendering_of_its_template(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert pages.render(page) == (ROOT / pages.PAGES[page]).read_text(encoding="utf-8")


def test_a_comparison_that_a_study_lacks_is_an_error_that_names_it(monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(ValueError, match=r"english/contrasts\.csv: 0 rows with .*'nothing'"):
        pages.look_up_contrast("english", "nothing", "loss=5.5")


def test_the_first_self_weight_is_uniform_for_original_high_for_symmetric_and_moved_by_a_self_score(tmp_path):
    corpus = Corpus.of(packed(tmp_path / "tokens"))
    variants = {"symmetric_centred": Variant(operator="symmetric", self_score=-1.7)}
    settings = load_settings(ROOT / "stages/scales/laptop.yaml")
    arms = {"operators": ("original", "symmetric", "symmetric_centred"), "variants": settings.variants | variants}
    frame = first_self_weight.measure_operators(settings.model_copy(update=arms), corpus).set_index("operator")
    assert set(frame["tokens"]) == {LENGTH} and set(frame["models"]) == {8}
    original, symmetric, centred = frame["self_weight"]
    assert original == pytest.approx(1 / LENGTH, rel=0.1)
    assert symmetric > 1.5 * original and centred < symmetric
