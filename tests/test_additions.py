"""What CONTRIBUTING says of an addition is enough: each is made by it in a copy of the code, which then has it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def copy(tmp_path) -> Path:
    """The code and what it reads at its start, in a folder that a test may edit."""
    shutil.copytree(ROOT / "stages", tmp_path / "stages", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data" / "published", tmp_path / "data" / "published")
    for name in ("dvc.yaml", "my_operators.py"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file}: {old!r} stands there {text.count(old)} times"
    file.write_text(text.replace(old, new), encoding="utf-8")


def says(folder: Path, *command: str) -> str:
    """What a command of Python says in a copy."""
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_key_is_one_field_one_line_of_the_scale_and_what_reads_it(copy):
    edit(
        copy / "stages/plumbing/training_sections.py",
        "    probes: bool = key(",
        '    patience: Count | None = key("Patience, evaluations", absent="endless", C="pretraining.batch_size")\n'
        "    probes: bool = key(",
    )
    edit(
        copy / "stages/scales/laptop.yaml",
        "  probes: false ",
        "  patience: null          # evaluations\n  probes: false ",
    )
    says(copy, "-m", "stages", "scale", "laptop")
    reader = """
from stages.common.evidence import published
from stages.plumbing.settings import load_settings
from stages.report import deviations
settings = load_settings()
rows = deviations.compare(settings.model_dump(mode="json"), published.protocol()).set_index("key")
print(settings.pretraining.patience, *rows.loc["pretraining.patience"], sep="|")
"""
    assert says(copy, "-c", reader) == "None|Patience, evaluations|256||endless|differs\n"
    edit(copy / "params.yaml", "patience: null", "patience: 0   ")
    with pytest.raises(AssertionError, match=r"pretraining\.patience: given 0; input should be greater"):
        says(copy, "-c", "from stages.plumbing.settings import load_settings; load_settings()")
