"""The settings beside the papers': no key is left out, and no sentence says what a table contradicts."""

from copy import deepcopy
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import yaml

from stages.evidence import published
from stages.report import deviations, open_items, table_rows
from stages.report.deviations import (
    AS_STATED,
    DIFFERS,
    DIFFERS_FROM_CODE,
    NO_EFFECT,
    NOT_STATED,
    UNKNOWN,
)
from stages.schema import keys, scales
from stages.schema.settings import Settings
from stages.schema.training_sections import Finetuning, Pretraining, QuestionAnswering
from stages.schema.translation_sections import TranslationProtocol
from tests.toy_settings import leaves, other

ROOT = Path(__file__).parents[1]
PROTOCOL = published.protocol()


@cache
def loaded(scale: str) -> Settings:
    return Settings.model_validate(yaml.safe_load(scales.read(scale)))


def params(scale: str = "laptop") -> dict:
    return loaded(scale).model_dump(mode="json")


def everything(settings: dict) -> pd.DataFrame:
    """All rows of the three tables of settings; what a table has not is empty."""
    return pd.concat(
        [
            *(deviations.compare(settings, PROTOCOL, name) for name in published.PAPERS),
            deviations.without_counterpart(settings),
        ]
    )


def row(settings: dict, key: str, source: str = "courtois2024", **more) -> pd.Series:
    return deviations.compare(settings, PROTOCOL, source, **more).set_index("key").loc[key]


@pytest.mark.parametrize("scale", ["laptop", "kowsher"])
def test_a_change_of_any_setting_is_seen_in_the_report(scale):
    before = everything(params(scale))
    for key in [key for key, _, _ in leaves(params(scale))]:
        settings = params(scale)
        [(record, name)] = [(record, name) for found, record, name in leaves(settings) if found == key]
        record[name] = other(deepcopy(record[name]))
        after = everything(settings)
        changed = (after["run"].to_numpy() != before["run"].to_numpy()) if len(after) == len(before) else None
        assert changed is not None and changed.any(), f"{key} is in no table of settings"
        own = after["key"].map(lambda row: bool(row) and f"{key}.".startswith(f"{row}."))  # noqa: B023
        assert changed[own.to_numpy()].all(), f"the row of {key} does not show its change"


@pytest.mark.parametrize("scale", scales.names())
def test_the_schema_has_a_name_for_every_setting_of_every_scale(scale):
    found = everything(params(scale))
    missing = found.loc[found["setting"].str.contains(UNKNOWN, regex=False), "key"]
    assert missing.empty, f"the schema says nothing of {', '.join(missing)}"


def test_what_a_record_says_of_inherited_keys_is_said_of_keys_that_it_has():
    for record in (Pretraining, Finetuning, QuestionAnswering, TranslationProtocol):
        assert {*record.inherited} - {"*"} <= {*record.model_fields}


def test_a_new_setting_is_shown_before_anything_is_said_of_it(monkeypatch):
    monkeypatch.setattr(keys, "of", lambda record, name: None)
    assert deviations.without_counterpart({"scale": "blue"}).set_index("key").loc["scale", "run"] == "blue"


VERDICTS = [  # scale, key, source
    ("laptop", "pretraining.betas", "courtois2024", DIFFERS),
    ("laptop", "pretraining.precision", "courtois2024", DIFFERS_FROM_CODE),
    ("laptop", "finetuning.courtois2024.learning_rates", "courtois2024", DIFFERS),
    ("laptop", "filtering.excluded_categories", "courtois2024", AS_STATED),
    ("laptop", "corpus.hub", "courtois2024", NO_EFFECT),
    ("courtois", "corpus.hub", "courtois2024", AS_STATED),
    ("kowsher", "corpus.hub", "courtois2024", DIFFERS),
    ("kowsher", "corpus.hub", "kowsher", AS_STATED),
    ("kowsher", "data.source", "courtois2024", DIFFERS),
    ("kowsher", "data.source", "kowsher", AS_STATED),
    ("kowsher", "finetuning.kowsher2025.hidden_dropout", "kowsher", NOT_STATED),
    ("kowsher", "pretraining.epochs", "kowsher", AS_STATED),
    ("kowsher", "pretraining.steps", "kowsher", NO_EFFECT),  # which the epochs give
]


@pytest.mark.parametrize(("scale", "key", "source", "verdict"), VERDICTS)
def test_a_setting_is_judged_by_what_the_source_has_of_it(scale, key, source, verdict):
    assert row(params(scale), key, source)["verdict"] == verdict


@pytest.mark.parametrize("key", ["train_pairs", "held_out_pairs"])
@pytest.mark.parametrize(("protocol", "source"), [("blog", "hadamard_blog"), ("draft", "aop")])
def test_all_sentence_pairs_are_those_of_a_source_only_where_its_dataset_is_read(protocol, source, key):
    settings, place = params("courtois"), f"translation.protocols.{protocol}.{key}"
    assert row(settings, place, source)["verdict"] in (AS_STATED, deviations.VERDICTS["followed"][0])
    other = deepcopy(settings)
    other["translation"]["protocols"][protocol]["hub"]["repository"] = "another/dataset"
    settings["data"]["source"] = "files"
    for otherwise in (other, settings):
        assert row(otherwise, place, source)["verdict"] in (DIFFERS, deviations.VERDICTS["followed"][1])


def test_the_papers_own_values_are_as_stated():
    settings = params()
    settings["pretraining"] |= {"steps": 200_000, "batch_size": 255, "betas": [0.9, 0.999]}
    assert row(settings, "pretraining.steps")["verdict"] == row(settings, "pretraining.betas")["verdict"] == AS_STATED
    assert row(settings, "pretraining.batch_size")["verdict"] == DIFFERS


def test_a_cap_on_the_documents_read_is_told_where_all_of_them_are_kept():
    settings = params("files")
    assert row(settings, "filtering.documents")["run"] == "all that pass, of those read (20,000)"
    assert row(settings, "corpus.documents")["verdict"] == DIFFERS


def test_a_rule_is_not_as_stated_on_documents_without_the_metadata_that_it_reads():
    found = row(params("files"), "filtering.harmful_pp.above", unknown={"harmful_pp": 20_000})
    assert found["verdict"] == DIFFERS and "20,000 documents have no such metadata and pass" in found["run"]
    assert row(params("files"), "filtering.harmful_pp.above", unknown={"categories": 1})["verdict"] == AS_STATED


def test_what_no_setting_changes_is_told_too():
    fixed = deviations.compare(params("courtois"), PROTOCOL).set_index("setting").loc["Batches of fine-tuning"]
    assert fixed["verdict"] == DIFFERS_FROM_CODE and "like length" in fixed["run"]


def test_a_place_that_is_not_in_the_protocol_is_an_error():
    protocol = deepcopy(PROTOCOL)
    del protocol["courtois2024"]["stated"]["pretraining"]["steps"]
    with pytest.raises(ValueError, match=r"pretraining\.steps: nothing at pretraining\.steps; there is no 'steps'"):
        deviations.compare(params(), protocol)


@pytest.mark.parametrize("scale", scales.names())
def test_nothing_depends_on_an_open_item_only_where_the_run_has_nothing_of_it(scale):
    settings = params(scale)
    chosen = {
        source: open_items.unspecified(settings, PROTOCOL, source).set_index("item")["chosen"]
        for source in PROTOCOL.keys() - {"schema"}
    }
    assert "entailment" in chosen["kowsher"]["label mapping between MNLI (3), QNLI (2), QQP (2), MRPC (2)"]
    assert chosen["hadamard_blog"]["number of heads"].startswith("8")
    missing = chosen["aop"]["whether encoder and decoder are both changed"]
    there = {"over_parameters", "over_parameters_wide"} & {
        *settings["operators"],
        *settings["translation"]["protocols"]["draft"]["operators"],
    }
    assert missing.startswith(open_items.NOT_HERE) == (not there)


def test_an_open_item_says_what_the_run_lacks_of_it():
    settings = params()
    settings["translation"]["protocols"]["blog"]["operators"] = ["original"]
    chosen = open_items.unspecified(settings, PROTOCOL, "hadamard_blog").set_index("item")["chosen"]
    assert chosen["whether self-, decoder- and cross-attention are all exchanged"] == (
        "Nothing of this run depends on it: no hadamard or fixed in translation.protocols.blog.operators."
    )


@pytest.mark.parametrize("source", ["embedded", "hub"])
@pytest.mark.parametrize("left", [[], ["blog"], ["draft"]])
def test_a_run_without_a_protocol_or_a_recipe_says_that_nothing_depends_on_what_they_leave_open(left, source):
    settings = params()
    settings["data"]["source"] = source
    protocols = settings["translation"]["protocols"]
    settings["translation"]["protocols"] = {name: protocols[name] for name in left}
    del settings["finetuning"]["kowsher2025"]
    settings["timing"]["protocol"] = "courtois2024"
    for paper in published.PAPERS:
        deviations.compare(settings, PROTOCOL, paper)
    chosen = {
        paper: open_items.unspecified(settings, PROTOCOL, paper).set_index("item")["chosen"]
        for paper in published.PAPERS
    }
    heads = chosen["hadamard_blog"]["number of heads"]
    nothing = "Nothing of this run depends on it: no translation.protocols.blog."
    assert heads.startswith("8") if "blog" in left else heads == nothing
    assert chosen["kowsher"].str.contains("no finetuning.kowsher2025").any()


def test_what_an_operator_leaves_open_matters_to_its_variants_too():
    settings = params() | {"operators": ["original", "pairwise_scaled"]}
    chosen = open_items.unspecified(settings, PROTOCOL, "courtois2024").set_index("item")["chosen"]
    assert chosen["initialisation of S"].startswith("N(0, 1)")


def test_an_open_item_without_a_word_on_it_is_an_error():
    protocol = deepcopy(PROTOCOL)
    protocol["aop"]["unspecified"].append({"item": "colour of the cover"})
    with pytest.raises(ValueError, match="colour of the cover"):
        open_items.unspecified(params(), protocol, "aop")


@pytest.mark.parametrize("scale", scales.names())
def test_the_checklist_counts_what_the_tables_list(scale, monkeypatch):
    monkeypatch.setattr(table_rows.read_results, "records", lambda _: [])  # not those of a run in this checkout
    settings = params(scale)
    beside = {source: deviations.compare(settings, PROTOCOL, source) for source in published.PAPERS}
    said = table_rows.checklist_facts(loaded(scale))
    differing = beside["courtois2024"]["verdict"].isin((DIFFERS, DIFFERS_FROM_CODE)).sum()
    assert said["differences"].startswith(f"{differing} of ")
    assert said["generated"] == ("yes" if settings["data"]["source"] == "embedded" else "does not apply")
    text = (ROOT / "reports/templates/checklist.yaml").read_text()
    assert "{differences}" in text and "papers' own" not in text
