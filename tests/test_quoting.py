"""Messages quote foreign text in a few characters, without any that would steer a terminal."""

import json
from pathlib import Path

import pytest

from stages.corpus import conversion
from stages.files import observations
from stages.files.quoting import LONGEST, quote_value
from stages.files.yaml_files import read_yaml
from stages.schema import scales
from stages.schema.settings import load_settings
from stages.tasks import squad, triviaqa
from tests.files import write_file
from tests.toy_settings import LAPTOP

# as a label, a name or a value; also as one of many keys
ODD = "\x1b[2J" + "a" * 1_000_000
KEYS = [f"key_{number}" for number in range(20_000)]


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("a\tb", r"'a\tb'"),
        (5, "5"),
        (ValueError("no\n  such\x1b"), r"no such\x1b"),
        ("a" * 100, "'" + "a" * 39 + "…" + "a" * 38 + "'"),
        (ValueError("begin" + "." * 100 + "end"), "begin" + "." * 35 + "…" + "." * 36 + "end"),
    ],
)
def test_a_quote_is_escaped_and_keeps_begin_and_end(value, quoted):
    assert quote_value(value) == quoted
    assert len(quoted) <= LONGEST


def read_corpus(line: dict, root: Path) -> None:
    path = write_file(root / "a.jsonl", json.dumps(line) + "\n")
    list(conversion.read_records(path))


def read_squad(name: str, answer: str, root: Path) -> None:
    asked = {"id": name, "question": "?", "answers": [{"text": answer, "answer_start": 0}]}
    content = {"data": [{"paragraphs": [{"context": "Paris", "qas": [asked]}]}]}
    write_file(root / "train-v1.1.json", json.dumps(content))
    squad.read_original(root, "squad1", "train")


def read_triviaqa(name: str, document: str, root: Path) -> None:
    entry = {"QuestionId": name, "Question": "?", "Answer": {"Aliases": ["a"]}, "EntityPages": [{"Filename": document}]}
    write_file(root / "triviaqa/qa/web-train.json", json.dumps({"Data": [entry]}))
    triviaqa.read_original(root, "train", 5)


def read_text(reader, text: str, root: Path) -> None:
    reader(write_file(root / "a.tsv", text))


def read_observations(path: Path) -> None:
    observations.read([path])


def load_edited(old: str, new: str, root: Path) -> None:
    text = LAPTOP.read_text()
    assert old in text
    load_settings(write_file(root / "params.yaml", text.replace(old, new, 1)))


QUOTED = json.dumps(ODD)
# YAML allows keys of 1,024 characters
KEY = json.dumps(ODD[:1000])
SITUATIONS = {
    "a line of 20,000 keys": (read_corpus, dict.fromkeys(KEYS, "a")),
    "an id of a million letters": (read_squad, ODD, "Rome"),
    "a document of TriviaQA outside": (read_triviaqa, "1", f"../{ODD}"),
    "columns of observations": (read_text, read_observations, ",".join(KEYS)),
    "a key of YAML that comes twice": (read_text, read_yaml, f"{KEY}: 1\n{KEY}: 2\n"),
    "a value of another type": (load_edited, "seed: 1 ", f"seed: {QUOTED} "),
    "an unknown value": (load_edited, "source: embedded", f"source: {QUOTED}"),
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_no_message_holds_a_whole_value_of_a_file(tmp_path, situation):
    read, *arguments = situation
    with pytest.raises((ValueError, OSError)) as caught:
        read(*arguments, tmp_path)
    message = str(caught.value).replace(str(tmp_path), "")
    assert len(message) < 500
    assert message.replace("\n", "").isprintable()


def test_the_report_of_replaced_edits_holds_no_whole_value(tmp_path):
    path = write_file(tmp_path / "params.yaml", f"scale: {QUOTED}\n{KEY}: {QUOTED}\n")
    report = scales.write("laptop", path)
    assert max(map(len, report.splitlines())) < 500
    assert report.replace("\n", "").isprintable()
