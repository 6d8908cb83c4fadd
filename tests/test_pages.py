"""The pages of the studies: their numbers follow from the observations beside them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from stages.evidence import convergence
from stages.evidence.derived import FIELDS
from stages.masked_lm.corpus import Corpus
from stages.report.tables import csv_of
from stages.schema.settings import load_settings
from stages.schema.training_sections import Variant
from stages.tools import first_self_weight, pages
from tests.toy import LENGTH, packed

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "reports/examples"
STUDIES = sorted(path.parent for path in EXAMPLES.rglob("analysis.yaml"))


@pytest.fixture(autouse=True)
def in_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_the_comparisons_of_a_study_follow_from_the_observations(study):
    for name, frame in pages.judge(study).items():
        assert csv_of(frame) == (study / f"{name}.csv").read_text(encoding="utf-8"), name


TABLES = {
    "released.csv": pages.judge_released,
    "english/runs.csv": pages.list_english_runs,
    "self_score/step_ratios.csv": pages.compare_step_ratios,
}


@pytest.mark.parametrize("path", TABLES)
def test_a_table_of_a_page_follows_from_observations(path):
    committed = (EXAMPLES / path).read_text(encoding="utf-8")
    assert csv_of(TABLES[path]()) == committed


def test_step_ratios_are_geometric_means_by_seed_and_compared_by_welchs_test():
    logarithms = []
    for tokens in (8, 16):
        rows = pages.read_observations(pages.SELF_SCORE / f"{tokens}_tokens")
        steps = convergence.crossings(rows, 5.5).set_index(["operator", "pretraining_seed"])["step"]
        logarithms.append(np.log(steps["symmetric"] / steps["original"]))
    short, long = logarithms
    frame = pages.compare_step_ratios().set_index("tokens")
    assert frame["seeds"].tolist()[:2] == [6, 4]
    for tokens, logs in (("8", short), ("16", long)):
        bounds = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
        assert tuple(frame.loc[tokens, ["ratio", "low", "high"]]) == pytest.approx(np.exp([logs.mean(), *bounds]))
    expected = stats.ttest_ind(long, short, equal_var=False)
    assert frame.loc["16 / 8", "ratio"] == pytest.approx(np.exp(long.mean() - short.mean()))
    assert frame.loc["16 / 8", "p"] == pytest.approx(expected.pvalue)


def test_a_run_that_never_falls_below_the_level_counts_with_its_last_step():
    rows = pd.DataFrame(
        {
            "operator": "shared",
            "pretraining_seed": [1, 1, 2, 2],
            "value": [6.0, 5.0, 7.0, 6.0],
        }
    )
    rows = rows.assign(
        stage="pretraining",
        metric="validation_loss",
        condition=["step=10", "step=20"] * 2,
    )
    runs = convergence.crossings(rows.reindex(columns=FIELDS).assign(size="mini"), 5.5)
    assert runs.values.tolist() == [
        ["shared", 1, 15.0, True, 5.0],
        ["shared", 2, 20.0, False, 6.0],
    ]


@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_is_the_rendering_of_its_template(page):
    assert pages.render(page) == (ROOT / pages.PAGES[page]).read_text(encoding="utf-8")


def test_a_comparison_that_a_study_lacks_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"english/contrasts\.csv: 0 rows with .*'nothing'"):
        pages.look_up_contrast("english", "nothing", "loss=5.5")


def test_the_first_self_weight_is_uniform_for_original_high_for_symmetric_and_moved_by_a_self_score(
    tmp_path,
):
    corpus = Corpus.of(packed(tmp_path / "tokens"))
    variants = {"symmetric_centred": Variant(operator="symmetric", self_score=-1.7)}
    settings = load_settings(ROOT / "stages/scales/laptop.yaml")
    arms = {
        "operators": ("original", "symmetric", "symmetric_centred"),
        "variants": settings.variants | variants,
    }
    frame = first_self_weight.measure_operators(settings.model_copy(update=arms), corpus).set_index("operator")
    assert set(frame["tokens"]) == {LENGTH} and set(frame["models"]) == {8}
    original, symmetric, centred = frame["self_weight"]
    assert original == pytest.approx(1 / LENGTH, rel=0.1)
    assert symmetric > 1.5 * original and centred < symmetric
