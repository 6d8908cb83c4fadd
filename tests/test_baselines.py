"""Baselines: what scores without a model, and the rule by which a model's score is at chance."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from stages.baselines import rules, stage, words
from stages.benchmarks import metrics
from stages.benchmarks.glue import TASKS
from stages.evidence import baselines, scores

N = 400


def observed(values: dict[tuple[str, str], float], operator: str = "most_frequent") -> pd.DataFrame:
    """Observations of a baseline: evaluated_on and metric to value."""
    rows = [
        {"stage": "baselines", "operator": operator, "evaluated_on": column, "metric": metric, "value": value, "n": N}
        for (column, metric), value in values.items()
    ]
    return pd.DataFrame(rows).assign(protocol=None, size=None)


def all_columns(value: float = 0.5) -> dict[tuple[str, str], float]:
    return {
        (column, metric): 0.0 if metric in baselines.CORRELATIONS else value
        for column, needed in scores.METRICS["courtois2024"].items()
        for metric in needed
    }


# What scores without a model


def test_the_most_frequent_answer_is_that_of_the_training_examples():
    truth = np.array([0, 0, 0, 1])
    assert stage.constant_scores("rte", np.array([1, 1, 0]), truth) == {"accuracy": 0.25}
    assert stage.constant_scores("stsb", np.array([1.0, 5.0]), truth) == {"pearson": 0.0, "spearmanr": 0.0}
    assert stage.constant_scores("cola", np.array([1, 1, 0]), truth) == {"matthews_correlation": 0.0}


def test_no_constant_answer_has_a_higher_f1_than_the_baseline():
    train, truth = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0, 1])
    found = stage.constant_scores("qqp", train, truth)
    constants = [metrics.scores("qqp", np.full(5, answer), truth) for answer in (0, 1)]
    assert found == {"accuracy": constants[0]["accuracy"], "f1": constants[1]["f1"]}


def test_each_linear_model_sees_what_its_name_says():
    assert words.either(("a b", "b c")) == ["a", "b", "b", "c"]
    assert set(words.overlap(("a b", "b c"))) == {
        *("first a", "first b", "second b", "second c", "shared b", "differing a", "differing c"),
        *("number of shared words", "number of differing words"),
    }
    assert sorted(words.overlap(("dog bites man", None))) == sorted(words.overlap(("Man bites dog", None)))
    assert {"first a b", "first  a", "first b ", "second c"} <= set(words.neighbours(("a b", "c")))
    assert "first b c" not in words.neighbours(("a b", "c"))


@pytest.fixture(scope="module")
def by_word_and_by_order() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs whose label is whether the second text is z, and texts whose label is whether a stands right before b."""
    generator = np.random.default_rng(0)
    texts = pd.Series([" ".join(generator.permutation(list("abc"))) for _ in range(300)])
    second = texts.where(generator.random(300) < 0.5, "z")
    by_word = pd.DataFrame({"text_a": texts, "text_b": second, "label": (second == "z").astype(int)})
    return by_word, pd.DataFrame({"text_a": texts, "text_b": None, "label": texts.str.contains("a b").astype(int)})


@pytest.mark.parametrize("features", words.FEATURES)
def test_a_linear_model_learns_what_words_say_and_only_bigrams_learn_what_order_says(by_word_and_by_order, features):
    correct = []
    for frame in by_word_and_by_order:
        predicted = words.predictions(frame[:200], frame[200:], False, features)
        correct.append((predicted == frame["label"][200:]).mean())
    assert correct[0] == 1.0
    assert correct[1] == 1.0 if features == "bigrams" else correct[1] < 0.8


@pytest.mark.parametrize("features", words.FEATURES)
def test_a_linear_model_that_has_seen_one_class_gives_that_class(features):
    train = pd.DataFrame({"text_a": ["a", "b"], "text_b": None, "label": [1, 1]})
    assert words.predictions(train, train, False, features).tolist() == [1, 1]


def test_the_best_rule_is_found_and_gives_the_constant_answer_where_training_has_seen_too_little():
    asked, other = "How can I buy a cart?", ("What is the best way to buy a cart?", "Why do people buy a cart?")
    pairs = [(asked, other[number % 2], 1 - number % 2) for number in range(20)]
    train = pd.DataFrame(pairs, columns=["text_a", "text_b", "label"])
    assert rules.predictions("qqp", train, train).tolist() == train["label"].tolist()
    few = train[: 2 * rules.SEEN - 2]
    assert len(set(rules.predictions("qqp", few, train))) == 1


def test_the_best_rule_for_a_similarity_gives_means_of_labels():
    train = pd.DataFrame({"text_a": ["a b"] * 10, "text_b": ["a b", "c"] * 5, "label": [5.0, 0.5] * 5})
    assert rules.predictions("stsb", train, train).tolist() == train["label"].tolist()


# The rule


@pytest.mark.parametrize("share", [1 / 3, 0.5, 0.8])
def test_the_interval_of_an_accuracy_is_left_by_chance_as_rarely_as_it_says(share):
    counts = np.arange(N + 1)
    inside = [low <= share <= high for low, high in (baselines.interval("accuracy", k / N, N, 0.95) for k in counts)]
    assert stats.binom.pmf(counts, N, share)[inside].sum() == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("metric", baselines.CORRELATIONS)
def test_the_interval_of_a_correlation_is_left_by_guesses_as_rarely_as_it_says(metric):
    generator = np.random.default_rng(1)
    low, high = baselines.interval(metric, 0.0, N, 0.95)
    task = next(task.name for task in TASKS.values() if metric in task.metrics)
    draw = (lambda: generator.integers(0, 2, N)) if metric == "matthews_correlation" else (lambda: generator.random(N))
    guessed = np.array([metrics.scores(task, draw(), draw())[metric] for _ in range(400)])
    assert np.mean((guessed > low) & (guessed < high)) == pytest.approx(0.95, abs=0.03)


def test_the_interval_of_f1_follows_the_share_of_positive_examples():
    share = 0.37
    low, high = baselines.interval("accuracy", share, N, 0.95)
    ends = baselines.interval("f1", 2 * share / (1 + share), N, 0.95)
    assert ends == pytest.approx((2 * low / (1 + low), 2 * high / (1 + high)))


def test_a_mean_over_columns_is_surer_than_a_column_and_a_mean_of_two_metrics_is_not():
    found = baselines.references(observed(all_columns()), 0.95)
    found = found[found["protocol"] == "courtois2024"].set_index("evaluated_on")
    widths = found["high"] - found["value"]
    assert widths["glue_score"] < min(widths[list(scores.COLUMNS)])
    assert widths["mrpc"] >= widths["rte"]
    one_answer = (1 / 3 + 0.5) / 2  # always positive: accuracy is the share of positive examples, which F1 gives
    assert found.loc["glue_score", "value"] == pytest.approx((5 * 0.5 + 2 * one_answer) / 9)


@pytest.mark.parametrize(("task", "positive"), [("qqp", 0.37), ("qqp", 0.1), ("mrpc", 0.67)])
def test_a_column_of_two_metrics_is_compared_with_one_constant_answer_the_better_one(task, positive):
    truth = (np.arange(N) < positive * N).astype(int)
    raw = stage.constant_scores(task, truth, truth)
    constants = [np.mean([*metrics.scores(task, np.full(N, answer), truth).values()]) for answer in (0, 1)]
    rows = observed({(task, metric): value for metric, value in raw.items()})
    found = baselines.references(rows, 0.95)
    found = found[(found["protocol"] == "courtois2024") & (found["metric"] == "score")].iloc[0]
    assert found["value"] == pytest.approx(max(constants))
    assert found["low"] < found["value"] < found["high"]


def test_a_transferred_accuracy_is_at_chance_where_always_yes_or_always_no_does_as_well():
    """MNLI has three classes of its own, and two where a model of another task is tested on it."""
    own = observed({("mnli_m", "accuracy"): 1 / 3})
    away = observed({("mnli_m", "majority_accuracy"): 0.665, ("qnli", "majority_accuracy"): 0.5}, "original")
    known = baselines.without_model(
        baselines.references(pd.concat([own, away.assign(stage="cross_domain", task="qqp")]), 0.95)
    )
    asked = pd.DataFrame(
        [("qqp", "mnli_m", "accuracy", 0.6), ("mnli", "mnli_m", "accuracy", 0.6)],
        columns=["task", "evaluated_on", "metric", "value"],
    ).assign(stage="cross_domain", protocol="p")
    found = baselines.add_baselines(asked, known)
    assert found["most_frequent"].tolist() == pytest.approx([0.665, 1 / 3])
    assert found["at_chance"].tolist() == [True, False]
    assert found["words_and_overlap"].isna().all()
    elsewhere = asked.assign(metric=baselines.ELSEWHERE, evaluated_on=None, value=0.61).iloc[:1]
    assert baselines.add_baselines(elsewhere, known)["most_frequent"].tolist() == pytest.approx([(0.665 + 0.5) / 2])


def test_a_constant_yes_or_no_on_other_tasks_is_known_without_any_fitted_baseline():
    away = observed({("mnli_m", "majority_accuracy"): 0.665, ("qnli", "majority_accuracy"): 0.5}, "original")
    known = baselines.without_model(baselines.references(away.assign(stage="cross_domain", task="qqp"), 0.95))
    asked = pd.DataFrame({"metric": ["accuracy"], "evaluated_on": "mnli_m", "task": "qqp", "value": 0.6})
    found = baselines.add_baselines(asked.assign(stage="cross_domain", protocol="p"), known)
    assert (found["most_frequent"].item(), found["at_chance"].item()) == (pytest.approx(0.665), True)
    assert baselines.references(away.iloc[:0], 0.95).empty


def test_a_score_is_at_chance_unless_it_is_above_the_interval_of_the_most_frequent_answer():
    rows = pd.concat([observed({("rte", "accuracy"): 0.5}), observed({("rte", "accuracy"): 0.7}, "words_and_overlap")])
    known = baselines.without_model(baselines.references(rows, 0.95))
    asked = pd.DataFrame({"protocol": "courtois2024", "evaluated_on": ["rte"] * 4 + ["qnli"], "metric": "raw_accuracy"})
    asked["value"] = [0.3, 0.54, 0.56, np.nan, 0.9]
    found = baselines.add_baselines(asked, known)
    assert found["at_chance"].tolist() == [True, True, False, pd.NA, pd.NA]
    assert found["most_frequent"].tolist()[:4] == [0.5] * 4
    assert found["words_and_overlap"].tolist()[:4] == [0.7] * 4


def test_one_baseline_alone_makes_no_mean_over_tasks_that_it_lacks():
    found = baselines.references(observed({("rte", "accuracy"): 0.5}), 0.95)
    assert "glue_score" not in set(found["evaluated_on"])
