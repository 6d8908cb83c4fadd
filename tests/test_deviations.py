"""The settings beside the papers': no key is left out, and the scales of the papers have the papers' settings."""

from collections import Counter
from copy import deepcopy

import pandas as pd
import pytest

from stages.evidence import published
from stages.report import deviations, table_rows
from stages.report.deviations import AS_STATED, DIFFERS, NOT_STATED
from stages.schema import scales
from stages.schema.settings import load_settings
from tests.toy_settings import list_leaves, make_other


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, dict]:
    """The settings of the scales, by name."""
    path, settings = tmp_path_factory.mktemp("scales") / "params.yaml", {}
    for scale in ("laptop", "courtois", "kowsher"):
        scales.write(scale, path)
        settings[scale] = load_settings(path).model_dump(mode="json")
    return settings


def test_every_stated_setting_is_a_key_of_params_yaml_with_a_place(written):
    rows = published.read_texts("settings")
    assert set(rows["source"]) == set(published.PAPERS)
    keyed = rows[rows["key"] != ""]
    assert not keyed.duplicated(["source", "key"]).any()
    known = {key for settings in written.values() for key in deviations.list_settings(settings)["key"]}
    assert set(keyed["key"]) <= known
    assert ((rows["stated"] == "") == (rows["place"] == "")).all()


def test_a_change_of_any_setting_is_seen_in_the_report(written):
    def list_everything(settings: dict) -> Counter:
        tables = [deviations.compare(settings, source) for source in published.PAPERS]
        rows = pd.concat([*tables, deviations.list_without_counterpart(settings)])
        return Counter(zip(rows["key"], rows["run"], strict=True))

    before = list_everything(written["laptop"])
    for number, (key, _, _) in enumerate(list_leaves(written["laptop"])):
        settings = deepcopy(written["laptop"])
        _, record, name = list(list_leaves(settings))[number]
        record[name] = make_other(record[name])
        changed = list_everything(settings) - before
        assert changed and all(f"{row}.".startswith(f"{key}.") for row, _ in changed), key


@pytest.mark.parametrize(
    ("scale", "key", "comparison"),
    [
        ("laptop", "filtering.excluded_categories", AS_STATED),
        ("laptop", "finetuning.courtois2024.learning_rates", DIFFERS),
        ("laptop", "tokenization.seed", NOT_STATED),
        ("courtois", "pretraining.steps", AS_STATED),
        ("kowsher", "corpus.hub.0.repository", DIFFERS),
    ],
)
def test_a_setting_is_compared_by_the_value_of_the_source(scale, key, comparison, written):
    assert deviations.compare(written[scale], "courtois2024").set_index("key").loc[key, "comparison"] == comparison


# a key that a paper states and scale `courtois` lacks would run the value of `laptop`
@pytest.mark.parametrize(
    ("scale", "source", "allowed"),
    [
        ("courtois", "courtois2024", {"operators", "corpus.hub.0.repository", "pretraining.epochs"}),
        ("courtois", "hadamard_blog", {"translation.protocols.blog.operators"}),
        ("courtois", "aop", set()),
        ("kowsher", "kowsher", {"pretraining.steps"}),
    ],
)
def test_the_scale_of_a_paper_differs_from_it_in_precision_and_in_named_keys_alone(scale, source, allowed, written):
    compared = deviations.compare(written[scale], source)
    keys = compared.loc[compared["comparison"] == DIFFERS, "key"]
    # rows without a key are differences that no setting changes
    differing = set(keys[~keys.str.endswith(".precision")]) - {""}
    assert differing == allowed, f"stages/scales/{scale}.yaml lacks values that {source} states, or has other digits"


def test_the_order_of_a_list_is_no_difference_and_differences_are_counted(written):
    settings = deepcopy(written["courtois"])
    before = deviations.count_differing(deviations.compare(settings, "courtois2024"))
    settings["tasks"]["names"].reverse()
    compared = deviations.compare(settings, "courtois2024")
    differing, stated = (compared["comparison"] == DIFFERS).sum(), (compared["stated"] != "").sum()
    assert deviations.count_differing(compared) == before == f"{differing} of {stated}"


@pytest.mark.parametrize("source", published.PAPERS)
def test_every_open_point_has_a_choice(source):
    rows = table_rows.list_unspecified(source)
    assert (rows[["item", "here"]] != "").all(axis=None)
