"""A scale is what it has otherwise than laptop, and becomes a whole params.yaml with the comments of both."""

from pathlib import Path

import pytest
import yaml

from stages.__main__ import main as run
from stages.schema import scales

LAPTOP = """\
# The default.

scale: laptop
steps: [1, 2]        # many

models:              # sizes
  tiny: {layers: 1}  # narrow

# Of operators:
variants:
  tied: {start: tied}
data:
  root: null         # a folder
  hub:
    files: null      # all
"""
OWN = """\
# The other one,
# for days.

scale: own
steps:
  [3, 4,             # more
   5]

models:
  base:
    layers: 12
variants:
  fast: {rate: 2.0}
data:                # ours
  hub:
    files:           # some
      - a

      - b            # last
"""
WHOLE = """\
# The other one,
# for days.

scale: own
steps:
  [3, 4,             # more
   5]

models:              # sizes
  tiny: {layers: 1}  # narrow
  base:
    layers: 12

# Of operators:
variants:
  fast: {rate: 2.0}
data:                # ours
  root: null         # a folder
  hub:
    files:           # some
      - a

      - b            # last
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(scales, "FOLDER", tmp_path)
    (tmp_path / "laptop.yaml").write_text(LAPTOP)
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "made").mkdir()
    monkeypatch.chdir(tmp_path / "made")
    return tmp_path


def test_what_a_scale_names_stands_with_its_comments_in_place_of_laptops_and_all_else_stays(folder):
    assert scales.read("laptop") == LAPTOP
    assert scales.read("own") == WHOLE


def test_a_value_of_several_lines_ends_before_the_key_that_follows(folder):
    (folder / "laptop.yaml").write_text("a:\n  b:\n    c: 1\n  d: 2\n")
    (folder / "own.yaml").write_text("a:\n  b:\n    c:\n      - 1\n      - 3\n    f: 5\n  d: 3\n  e: 4\n")
    assert scales.read("own") == (folder / "own.yaml").read_text()


def test_an_empty_file_is_replaced_like_one_without_any_key(folder, capsys):
    Path("params.yaml").touch()
    run(["scale", "laptop"])
    assert "None:" not in capsys.readouterr().out and Path("params.yaml").read_text() == LAPTOP


@pytest.mark.parametrize("scale", sorted({*scales.names()} - {scales.COMPLETE}))
def test_the_file_of_a_scale_names_nothing_that_laptop_has_as_well(scale):
    laptop, own = (
        yaml.safe_load((scales.FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
        for name in (scales.COMPLETE, scale)
    )
    known = dict(scales.values({key: value for key, value in laptop.items() if key not in scales.TAKEN_WHOLE}))
    flow = {f"models.{name}" for name in own.get("models", {})}
    same = [key for key, value in scales.values(own) if known.get(key, scales.ABSENT) == value]
    fixed = {"pretraining.seeds"}  # which the heads of scales and finished studies name
    assert [key for key in same if key.rpartition(".")[0] not in flow and key not in fixed] == []


def test_the_command_writes_a_scale_and_says_which_edits_it_replaced(folder, capsys):
    run(["scale", "own"])
    Path("params.yaml").write_text(WHOLE.replace("12", "6"))
    run(["scale", "laptop"])
    run(["scale", "own"])
    assert Path("params.yaml").read_text() == WHOLE
    assert capsys.readouterr().out.splitlines() == [
        "params.yaml: scale `own`",
        "params.yaml: scale `laptop`, in place of `own` with these keys otherwise than that scale:",
        "  models.base.layers: 6 (own: 12)",
        "params.yaml: scale `own`, in place of `laptop` with nothing edited",
    ]


def test_a_file_that_cannot_be_read_is_not_replaced(folder):
    Path("params.yaml").write_text("a: [1")
    with pytest.raises(SystemExit, match=r"params\.yaml: not YAML"):
        run(["scale", "own"])
    assert Path("params.yaml").read_text() == "a: [1"
