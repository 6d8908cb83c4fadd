"""The settings beside the papers': no key is left out, and no sentence contradicts a table."""

from collections import Counter
from copy import deepcopy

import pandas as pd
import pytest

from stages.evidence import published
from stages.report import deviations, open_items
from stages.report.deviations import AS_STATED, DIFFERS, DIFFERS_FROM_CODE, NO_EFFECT, NOT_STATED
from stages.schema import scales
from stages.schema.settings import load_settings
from tests.toy_settings import list_leaves, make_other

PROTOCOL = published.read_protocol()
AS_FOLLOWED, DIFFERS_FROM_FOLLOWED = deviations.VERDICTS["followed"]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, dict]:
    """The settings of all scales, by name."""
    path, settings = tmp_path_factory.mktemp("scales") / "params.yaml", {}
    for scale in scales.list_scales():
        scales.write(scale, path)
        settings[scale] = load_settings(path).model_dump(mode="json")
    return settings


def list_everything(settings: dict) -> pd.DataFrame:
    """The rows of all tables of settings."""
    tables = [deviations.compare(settings, source) for source in published.PAPERS]
    return pd.concat([*tables, deviations.list_without_counterpart(settings)])


def find_row(settings: dict, key: str, source: str = "courtois2024", **more) -> pd.Series:
    return deviations.compare(settings, source, **more).set_index("key").loc[key]


def list_chosen(settings: dict, source: str) -> pd.Series:
    return open_items.list_unspecified(settings, PROTOCOL, source).set_index("item")["chosen"]


def test_every_row_of_the_table_of_stated_settings_can_be_compared(written):
    rows, settings = deviations.read_stated(), deviations.list_settings(written["laptop"])
    assert max(Counter((row["source"], row["key"]) for row in rows).values()) == 1
    for row in rows:
        keys = [row["key"], *row["also"].split(), *(row["needs"] or ())]
        assert {*keys} <= settings.keys()
        assert row["source"] in published.PAPERS
        assert row["part"] in {"open", *deviations.VERDICTS}
        assert row["compare"] in {"", "equal", "covers", "among", "count", "contains"}


@pytest.mark.parametrize("scale", ["laptop", "kowsher"])
def test_a_change_of_any_setting_is_seen_in_the_report(scale, written):
    before = list_everything(written[scale])
    for number, (key, _, _) in enumerate(list_leaves(written[scale])):
        settings = deepcopy(written[scale])
        _, record, name = list(list_leaves(settings))[number]
        record[name] = make_other(record[name])
        after = list_everything(settings)
        shown = after["key"].map(lambda row: bool(row) and f"{key}.".startswith(f"{row}."))  # noqa: B023
        changed = after["run"].to_numpy() != before["run"].to_numpy()
        assert shown.any() and changed[shown.to_numpy()].all(), key


VERDICTS = [
    ("laptop", "courtois2024", "pretraining.betas", DIFFERS),
    ("laptop", "courtois2024", "pretraining.precision", DIFFERS_FROM_CODE),
    ("laptop", "courtois2024", "finetuning.courtois2024.learning_rates", DIFFERS),
    ("laptop", "courtois2024", "filtering.excluded_categories", AS_STATED),
    ("laptop", "courtois2024", "corpus.hub", NO_EFFECT),
    ("files", "courtois2024", "corpus.documents", DIFFERS),
    ("courtois", "courtois2024", "corpus.hub", AS_STATED),
    ("courtois", "courtois2024", "pretraining.steps", AS_STATED),
    ("courtois", "hadamard_blog", "translation.protocols.blog.train_pairs", AS_FOLLOWED),
    ("courtois", "aop", "translation.protocols.draft.held_out_pairs", AS_STATED),
    ("kowsher", "courtois2024", "corpus.hub", DIFFERS),
    ("kowsher", "courtois2024", "data.source", DIFFERS),
    ("kowsher", "courtois2024", "finetuning.courtois2024.epochs", NO_EFFECT),
    ("kowsher", "kowsher", "corpus.hub", AS_STATED),
    ("kowsher", "kowsher", "data.source", AS_STATED),
    ("kowsher", "kowsher", "finetuning.kowsher2025.hidden_dropout", NOT_STATED),
    ("kowsher", "kowsher", "pretraining.epochs", AS_STATED),
    ("kowsher", "kowsher", "pretraining.steps", NO_EFFECT),  # the epochs give them
]


@pytest.mark.parametrize(("scale", "source", "key", "verdict"), VERDICTS)
def test_a_setting_is_judged_by_the_value_of_the_source(scale, source, key, verdict, written):
    assert find_row(written[scale], key, source)["verdict"] == verdict


@pytest.mark.parametrize(
    ("comparison", "same"),
    [("covers", [True, True, False]), ("among", [True, False, True]), ("", [True, False, False])],
)
def test_lists_are_compared_as_the_table_says_in_any_order(comparison, same):
    values = (["b", "a"], ["a", "b", "c"], ["a"])
    assert [deviations.is_same(value, ["a", "b"], comparison) for value in values] == same


@pytest.mark.parametrize(("scale", "source"), [("courtois", "courtois2024"), ("kowsher", "kowsher")])
def test_the_scale_of_a_paper_differs_from_it_in_the_precision_alone(scale, source, written):
    compared = deviations.compare(written[scale], source)
    differing = compared[compared["verdict"].isin([DIFFERS, DIFFERS_FROM_CODE])]["key"]
    # differences without a key are those that no setting changes
    assert set(differing.str.rpartition(".")[2]) <= {"", "precision"}


@pytest.mark.parametrize("place", [("data", "source"), ("translation", "protocols", "blog", "hub", "repository")])
def test_all_sentence_pairs_are_the_sources_only_if_its_dataset_is_read(place, written):
    settings = deepcopy(written["courtois"])
    *sections, name = place
    section = settings
    for part in sections:
        section = section[part]
    section[name] = "files"
    for key in ("train_pairs", "held_out_pairs"):
        found = find_row(settings, f"translation.protocols.blog.{key}", "hadamard_blog")
        assert found["verdict"] == DIFFERS_FROM_FOLLOWED


def test_a_rule_is_not_as_stated_on_documents_without_the_metadata_that_it_reads(written):
    found = find_row(written["files"], "filtering.harmful_pp.above", unknown={"harmful_pp": 20_000})
    assert found["verdict"] == DIFFERS and "20,000 documents have no such metadata and pass" in found["run"]
    assert find_row(written["files"], "filtering.harmful_pp.above", unknown={"categories": 1})["verdict"] == AS_STATED
    assert find_row(written["laptop"], "filtering.harmful_pp.above", unknown={"harmful_pp": 1})["verdict"] == AS_STATED


def test_differences_that_no_setting_changes_are_listed_and_counted(written):
    compared = deviations.compare(written["courtois"], "courtois2024")
    assert compared.set_index("setting").loc["Batches of fine-tuning", "verdict"] == DIFFERS_FROM_CODE
    judged = ~compared["verdict"].isin([NOT_STATED, NO_EFFECT])
    differing = compared["verdict"].isin([DIFFERS, DIFFERS_FROM_CODE])
    assert deviations.count_differing(compared) == f"{differing.sum()} of {judged.sum()}"


@pytest.mark.parametrize("source", published.PAPERS)
def test_every_open_point_has_a_choice_whose_settings_exist(source, written):
    choices, points = deviations.read_deviations()["open"][source], PROTOCOL[source]["unspecified"]
    assert set(choices) == {point["item"] for point in points}
    settings = deviations.list_settings(written["laptop"])
    for choice in choices.values():
        sentence = choice if isinstance(choice, str) else choice["chosen"]
        assert {*open_items.KEY.findall(sentence)} <= settings.keys()


def test_a_choice_is_filled_with_settings_or_says_which_the_run_lacks(written):
    settings = deepcopy(written["laptop"])
    exchanged = "whether self-, decoder- and cross-attention are all exchanged"
    assert list_chosen(settings, "kowsher")["tokenizer"] == "trained on the filtered corpus"
    assert list_chosen(settings, "hadamard_blog")[exchanged] == "all three"
    settings["operators"] = ["original", "pairwise_scaled"]  # a variant of pairwise
    assert list_chosen(settings, "courtois2024")["initialisation of S"].startswith("N(0, 1)")
    assert list_chosen(settings, "kowsher")["bias of the shared projection"] == (
        "Nothing of this run depends on it: only with operators: shared."
    )
    del settings["translation"]["protocols"]["blog"]
    assert list_chosen(settings, "hadamard_blog")[exchanged].startswith(open_items.NOT_HERE)
    assert list_chosen(settings, "hadamard_blog")["number of heads"] == (
        "Nothing of this run depends on it: no translation.protocols.blog.heads in params.yaml."
    )
    assert len(deviations.compare(settings, "hadamard_blog")) == 1
