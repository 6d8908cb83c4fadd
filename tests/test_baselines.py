"""Baselines: scores without a neural network, and the rule by which a score is at chance."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from stages.baselines import stage, words
from stages.benchmarks import metrics
from stages.evidence import baselines, scores

N = 400


def observe(values: dict[tuple[str, str], float], operator: str = "most_frequent", **more) -> pd.DataFrame:
    """Makes observations of a baseline, by evaluated_on and metric."""
    rows = pd.Series(values, name="value").rename_axis(["evaluated_on", "metric"]).reset_index()
    fields = {"stage": "baselines", "operator": operator, "protocol": None, "size": None, "n": N}
    return rows.assign(**(fields | more))


# Scores without a neural network


@pytest.mark.parametrize(
    ("task", "train", "truth", "expected"),
    [
        ("rte", [1, 1, 0], [0, 0, 0, 1], {"accuracy": 0.25}),
        ("stsb", [1.0, 5.0], [0.0, 1.0, 2.0], {"pearson": 0.0, "spearmanr": 0.0}),
        ("cola", [1, 1, 0], [0, 0, 0, 1], {"matthews_correlation": 0.0}),
        # The F1 of the positive class, which no other constant answer exceeds.
        ("qqp", [0, 0, 0, 1], [0, 0, 1, 0, 1], {"accuracy": 0.6, "f1": 4 / 7}),
    ],
)
def test_the_most_frequent_answer_is_that_of_the_training_examples(task, train, truth, expected):
    assert stage.score_constant(task, np.array(train), np.array(truth)) == pytest.approx(expected)


def test_each_linear_model_sees_the_features_of_its_name():
    assert words._extract_words(("a b", "b c")) == ["a", "b", "b", "c"]
    overlap = words._extract_overlap(("a b", "b c"))
    assert {"differing a", "differing c", "first a", "second c", "shared b"} <= set(overlap)
    assert overlap.count("number of shared words") == 1
    assert overlap.count("number of differing words") == 2
    # Without a second text, order does not count.
    assert sorted(words._extract_overlap(("dog bites man", None))) == ["first bites", "first dog", "first man"]
    neighbours = set(words._extract_neighbours(("a b", "c")))
    assert {"first a b", "first  a", "first b ", "second c"} <= neighbours


@pytest.mark.parametrize("features", words.FEATURES)
def test_a_linear_model_learns_words_and_only_bigrams_learn_order(features):
    generator = np.random.default_rng(0)
    rows = []
    for _ in range(300):
        text = " ".join(generator.permutation(list("abc")))
        rows.append((text, "z" if generator.random() < 0.5 else text))
    frame = pd.DataFrame(rows, columns=["text_a", "text_b"])
    by_word = frame.assign(label=(frame["text_b"] == "z").astype(int))
    by_order = frame.assign(label=frame["text_a"].str.contains("a b").astype(int), text_b=None)
    right = []
    for rows in (by_word, by_order):
        predicted = words.predict_linear("rte", rows[:200], rows[200:], features)
        right.append((predicted == rows["label"][200:]).all())
    assert right == [True, features == "bigrams"]


def test_of_equally_frequent_answers_the_first_by_code_points_is_given_to_every_question(in_an_empty_folder):
    folder = stage.TASK_FOLDER / "squad2"
    folder.mkdir(parents=True)
    # The first gold answer of a question counts, in normal form.
    train = [["c"], ["The b", "c"], [], ["c"], ["B."]]
    for split, gold in (("train", train), ("validation", [["b"], ["c"], ["c"], []])):
        pd.DataFrame({"answers": gold}).to_parquet(folder / f"{split}.parquet")
    exact, _ = stage.score_question_answering("squad2_triviaqa", "squad2")
    assert (exact.task, exact.evaluated_on, exact.metric) == ("squad2_triviaqa", "squad2", "exact_match")
    assert (exact.value, exact.n) == (1 / 4, 4)


def test_a_linear_model_that_has_seen_one_class_gives_that_class():
    train = pd.DataFrame({"text_a": ["a", "b"], "text_b": None, "label": [1, 1]})
    assert words.predict_linear("sst2", train, train, "bigrams").tolist() == [1, 1]


# The rule


def test_the_interval_of_an_accuracy_is_that_of_scipy():
    expected = stats.binomtest(130, N).proportion_ci(0.9, method="wilson")
    assert baselines.compute_interval("accuracy", 130 / N, N, 0.9) == pytest.approx(tuple(expected))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("metric", baselines.CORRELATIONS)
def test_the_interval_of_a_correlation_is_that_of_scipy(metric):
    numbers = np.arange(-3.0, 4)
    expected = stats.pearsonr(numbers, numbers**2).confidence_interval(0.95)
    assert baselines.compute_interval(metric, 0.0, 7, 0.95) == pytest.approx(tuple(expected))
    assert baselines.compute_interval(metric, 0.0, 3, 0.95) == (-1, 1)


def test_the_interval_of_f1_follows_the_share_of_positive_examples():
    share = 0.37
    low, high = baselines.compute_interval("accuracy", share, N, 0.95)
    expected = [2 * end / (1 + end) for end in (low, share, high)]
    ends = baselines.compute_interval("f1", expected[1], N, 0.95)
    assert ends == pytest.approx((expected[0], expected[2]))


def test_a_mean_over_columns_is_surer_than_a_column_and_a_mean_of_two_metrics_is_not():
    values = {}
    for column, needed in scores.METRICS["courtois2024"].items():
        for metric in needed:
            values[column, metric] = 0.0 if metric in baselines.CORRELATIONS else 0.5
    found = baselines.collect_baselines(observe(values), 0.95)
    found = found[found["protocol"] == "courtois2024"].set_index("evaluated_on")
    widths = found["high"] - found["value"]
    assert widths["glue_score"] < min(widths[list(scores.COLUMNS)])
    assert widths["mrpc"] >= widths["rte"]
    # Always positive: accuracy is the share of positive examples, which F1 gives.
    one_answer = (1 / 3 + 0.5) / 2
    assert found.loc["glue_score", "value"] == pytest.approx((5 * 0.5 + 2 * one_answer) / 9)


@pytest.mark.parametrize(("task", "positive"), [("qqp", 0.37), ("qqp", 0.1), ("mrpc", 0.67)])
def test_a_column_of_two_metrics_is_compared_with_the_better_constant_answer(task, positive):
    truth = (np.arange(N) < positive * N).astype(int)
    constants = []
    for answer in (0, 1):
        both = metrics.compute_metrics(task, np.full(N, answer), truth)
        constants.append(np.mean(list(both.values())))
    observed = {}
    for metric, value in stage.score_constant(task, truth, truth).items():
        observed[task, metric] = value
    found = baselines.collect_baselines(observe(observed), 0.95)
    [row] = found.query("protocol == 'courtois2024' and metric == 'score'").to_dict("records")
    assert row["value"] == pytest.approx(max(constants))
    assert row["low"] < row["value"] < row["high"]


def test_a_transferred_accuracy_is_at_chance_where_always_yes_or_always_no_does_as_well():
    """MNLI has three classes, and two if a model of another task is tested on MNLI."""
    own = observe({("mnli_m", "accuracy"): 1 / 3})
    away = {("mnli_m", "majority_accuracy"): 0.665, ("qnli", "majority_accuracy"): 0.5}
    rows = pd.concat([own, observe(away, "original", stage="cross_domain", task="qqp")])
    known = baselines.collect_baselines(rows, 0.95)
    asked = pd.DataFrame({"task": ["qqp", "mnli"], "evaluated_on": "mnli_m", "metric": "accuracy", "value": 0.6})
    asked = asked.assign(stage="cross_domain", protocol="p")
    found = baselines.add_baselines(asked, known)
    assert found["most_frequent"].tolist() == pytest.approx([0.665, 1 / 3])
    assert found["at_chance"].tolist() == [True, False]
    other = baselines.add_baselines(asked.assign(metric="balanced_accuracy"), known)
    assert other["most_frequent"].isna().all()


def test_a_score_is_at_chance_unless_it_is_above_the_interval_of_the_most_frequent_answer():
    rows = pd.concat([observe({("rte", "accuracy"): 0.5}), observe({("rte", "accuracy"): 0.7}, "words_and_overlap")])
    known = baselines.collect_baselines(rows, 0.95)
    asked = pd.DataFrame({"protocol": "courtois2024", "evaluated_on": ["rte"] * 4 + ["qnli"], "metric": "raw_accuracy"})
    asked["value"] = [0.3, 0.54, 0.56, np.nan, 0.9]
    found = baselines.add_baselines(asked, known)
    assert found["at_chance"].tolist() == [True, True, False, pd.NA, pd.NA]
    assert baselines.is_at_chance(0.55, 0.55)
    assert found["most_frequent"].tolist()[:4] == [0.5] * 4
    assert found["words_and_overlap"].tolist()[:4] == [0.7] * 4


def test_a_single_baseline_makes_no_mean_over_tasks_that_it_lacks():
    found = baselines.collect_baselines(observe({("rte", "accuracy"): 0.5}), 0.95)
    assert "glue_score" not in set(found["evaluated_on"])
