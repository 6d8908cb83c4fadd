"""The committed data of source `embedded` are the data that their README describes."""

import hashlib
import re

from stages.files.yaml_files import is_generated
from tests.places import ROOT

FOLDER = ROOT / "data/embedded"
ROW = re.compile(r"^\| `([^`]+)`.*\| `([0-9a-f]{64})` \|$", re.MULTILINE)


def test_the_page_lists_the_checksum_of_every_file():
    checksums = dict(ROW.findall((FOLDER / "README.md").read_text()))
    listed = {FOLDER / "README.md"}
    for pattern, checksum in checksums.items():
        files = sorted(FOLDER.glob(pattern))
        content = b"".join(path.read_bytes() for path in files)
        assert hashlib.sha256(content).hexdigest() == checksum, pattern
        listed.update(files)
    assert listed == {path for path in FOLDER.rglob("*") if path.is_file()}


def test_only_the_metadata_of_a_page_mark_data_as_generated(tmp_path):
    assert is_generated(FOLDER)
    assert not is_generated(tmp_path)
    for text, expected in {"a\ngenerated: true\n": False, "---\na: b\n---\ngenerated: true\n": False}.items():
        (tmp_path / "README.md").write_text(text)
        assert is_generated(tmp_path) == expected
    (tmp_path / "README.md").write_text("---\na: b\ngenerated: true\n---\n")
    assert is_generated(tmp_path)
