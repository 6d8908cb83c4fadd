"""A scale's file has only differences from laptop, and becomes a whole params.yaml with the comments of both."""

import shutil
from io import StringIO
from pathlib import Path

import pytest
import yaml

from stages.__main__ import main as run
from stages.files.yaml_files import list_values
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
  share: 1.0e-3      # small

report:
  pdf: false         # true: a PDF
"""
OWN = """\
# The other one,
# for days.

scale: own
steps:
  [3, 4]             # more

models:
  base:
    layers: 12
variants:
  fast: {rate: 2.0}

data:                # ours
  share: 2.0e-3      # double
"""
WHOLE = """\
# The other one,
# for days.

scale: own
steps: [3, 4]        # more

models:              # sizes
  tiny: {layers: 1}  # narrow

# Of operators:
  base:
    layers: 12
variants:
  fast: {rate: 2.0}
data:                # ours
  root: null         # a folder
  share: 2.0e-3      # double

report:
  pdf: false         # true: a PDF
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(scales, "FOLDER", tmp_path)
    (tmp_path / "laptop.yaml").write_text(LAPTOP)
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "made").mkdir()
    monkeypatch.chdir(tmp_path / "made")
    return tmp_path


def test_values_of_a_scale_replace_those_of_laptop_with_their_comments(folder):
    assert scales.read("laptop") == LAPTOP
    assert scales.read("own") == WHOLE


def test_hidden_files_are_no_scales(tmp_path, monkeypatch):
    shutil.copyfile(scales.FOLDER / "laptop.yaml", tmp_path / "laptop.yaml")
    # what a Mac leaves beside a file in an archive, and an editor's mark of a file with unsaved changes
    (tmp_path / "._laptop.yaml").write_bytes(b"\0\5\x16\7")
    (tmp_path / ".#laptop.yaml").symlink_to("user@host.1:2")
    monkeypatch.setattr(scales, "FOLDER", tmp_path)
    assert scales.list_scales() == ["laptop"]


@pytest.mark.parametrize("scale", scales.list_scales())
def test_a_written_scale_has_the_values_of_both_files_in_the_layout_of_laptop(scale):
    text = scales.read(scale)
    document, written = scales._make_yaml_parser(), StringIO()
    document.dump(document.load(text), written)
    assert written.getvalue() == text
    laptop, own, whole = (
        list_values(yaml.safe_load(content))
        for content in (scales.read("laptop"), (scales.FOLDER / f"{scale}.yaml").read_text(), text)
    )
    for key, value in whole.items():
        assert value == own.get(key, laptop.get(key))


def test_the_command_writes_a_scale_and_reports_the_edits_that_it_replaced(folder, capsys):
    params = Path("params.yaml")
    run(["scale", "own"])
    params.write_text(WHOLE.replace("12", "6"))
    run(["scale", "laptop"])
    run(["scale", "own"])
    assert params.read_text() == WHOLE
    assert capsys.readouterr().out.splitlines() == [
        "params.yaml: scale `own`",
        "params.yaml: scale `laptop`, in place of `own` with these values that differ from that scale:",
        "  models.base.layers: 6 (own: 12)",
        "params.yaml: scale `own`, in place of `laptop` with nothing edited",
    ]


def test_a_link_stays_a_link_and_a_private_file_stays_private(folder):
    Path("private.yaml").write_text(WHOLE)
    Path("private.yaml").chmod(0o600)
    Path("params.yaml").symlink_to("private.yaml")
    run(["scale", "laptop"])
    assert Path("params.yaml").is_symlink()
    assert Path("private.yaml").read_text() == LAPTOP
    assert Path("private.yaml").stat().st_mode & 0o777 == 0o600


def test_a_section_that_was_emptied_is_one_edit(folder, capsys):
    Path("params.yaml").write_text(
        LAPTOP.replace("data:\n  root: null         # a folder\n  share: 1.0e-3      # small", "data: {}")
    )
    run(["scale", "laptop"])
    assert capsys.readouterr().out.splitlines()[1:] == ["  data: {} (laptop: not empty)"]


def test_an_empty_file_is_replaced_and_a_broken_file_stays(folder):
    params = Path("params.yaml")
    params.touch()
    run(["scale", "laptop"])
    assert params.read_text() == LAPTOP
    params.write_text("a: [1")
    with pytest.raises(SystemExit, match=r"params\.yaml, line [12]: not YAML"):
        run(["scale", "own"])
    assert params.read_text() == "a: [1"


def test_the_name_of_a_scale_above_the_values_of_another_is_refused_with_the_command(folder):
    params = Path("params.yaml")
    for text in (LAPTOP, WHOLE, LAPTOP.replace("layers: 1", "layers: 2"), WHOLE.replace("layers: 12", "layers: 6")):
        params.write_text(text)
        scales.require_named(params)
    params.write_text(WHOLE.replace("scale: own", "scale: laptop"))
    with pytest.raises(ValueError, match=r"given 'laptop', .* 0 from `own`; `python -m stages scale laptop` writes"):
        scales.require_named(params)
    params.write_text(WHOLE.replace("scale: own", "scale: of_a_user"))
    scales.require_named(params)
