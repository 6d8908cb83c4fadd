"""The recipes of CONTRIBUTING are complete: each addition is made in a copy of the code and then works."""

import shutil
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.processes import run


@pytest.fixture
def copy(tmp_path) -> Path:
    """The code and the files that the code reads at the start, in a folder that a test may edit."""
    shutil.copytree(ROOT / "stages", tmp_path / "stages", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data/published", tmp_path / "data/published")
    for name in ("dvc.yaml", "my_operators.py"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{file}: {old!r} stands there {text.count(old)} times"
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_a_key_is_one_field_one_line_of_the_scale_and_what_reads_it(copy):
    edit(
        copy / "stages/schema/training_sections.py",
        "    probes: bool\n",
        "    patience: Count | None\n    probes: bool\n",
    )
    edit(
        copy / "stages/scales/laptop.yaml",
        "  probes: false ",
        "  patience: null          # evaluations\n  probes: false ",
    )
    run(copy, "python", "-m", "stages", "scale", "laptop")
    reader = """
from stages.schema.settings import load_settings
from stages.report import deviations
settings = load_settings()
rows = deviations.list_without_counterpart(settings.model_dump(mode="json")).set_index("key")
print(settings.pretraining.patience, *rows.loc["pretraining.patience"], sep="|")
"""
    assert run(copy, "python", "-c", reader) == "None|null\n"
    with (copy / "data/published/settings.csv").open("a") as table:
        table.write("pretraining.patience,courtois2024,Patience,5,section 3.3,null: endless\n")
    reader = """
from stages.schema.settings import load_settings
from stages.report import deviations
rows = deviations.compare(load_settings().model_dump(mode="json"), "courtois2024").set_index("key")
print(*rows.loc["pretraining.patience"], sep="|")
"""
    assert run(copy, "python", "-c", reader) == "courtois2024|Patience|5|section 3.3|null: endless|null|differs\n"
    edit(copy / "params.yaml", "patience: null", "patience: 0   ")
    with pytest.raises(AssertionError, match=r"pretraining\.patience: given 0; input should be greater"):
        run(copy, "python", "-c", "from stages.schema.settings import load_settings; load_settings()")


def test_an_operator_is_a_class_and_its_name_in_the_list(copy):
    operators = copy / "stages/attention/operators.py"
    entry = (
        '    "KeysOnly": Description(\n'
        '        name="keys_only",\n'
        '        equation="softmax(K_i K_i^T / sqrt(d)) V_i",\n'
        '        source="a test",\n'
        '        label="keys, and keys alone",\n'
        '        look=("#123456", "dotted"),\n'
        "    ),\n"
    )
    edit(copy / "stages/attention/catalogue.py", '    "Fixed":', f'{entry}    "Fixed":')
    edit(operators, "\nSELF_ATTENTION:", "\nclass KeysOnly(Symmetric):\n    pass\n\n\nSELF_ATTENTION:")
    edit(
        operators,
        "        Original,\n        Symmetric,\n",
        "        KeysOnly,\n        Original,\n        Symmetric,\n",
    )
    run(copy, "python", "-m", "stages", "scale", "laptop")
    edit(copy / "params.yaml", "operators: [original, symmetric, pairwise, shared]", "operators: [original, keys_only]")
    reader = """
from stages.attention.operators import build_attention
from stages.schema.settings import load_settings
from stages.report import looks, names
print(load_settings().operators, type(build_attention("keys_only", 8, 2)).__name__)
print(names.name_key("keys_only"), looks.find_style("keys_only"))
"""
    assert run(copy, "python", "-c", reader).splitlines() == [
        "('original', 'keys_only') KeysOnly",
        "keys, and keys alone ('#123456', 'dotted')",
    ]


def test_a_task_is_a_record_and_its_name_in_the_schema(copy):
    with (copy / "stages/benchmarks/glue.yaml").open("a") as records:
        records.write(
            "\n- name: wnli\n  folder: WNLI\n  texts: [sentence1, sentence2]\n  label: label\n  labels: *binary\n"
            "  classes: *binary\n  metrics: [accuracy]\n"
            "  splits: [*train, {name: validation, stem: dev, evaluated_on: wnli}]\n"
        )
    edit(copy / "stages/schema/sections.py", '"rte"]\nQuestionSet', '"rte", "wnli"]\nQuestionSet')
    run(copy, "python", "-m", "stages", "scale", "laptop")
    edit(copy / "params.yaml", "qnli, rte]", "qnli, rte, wnli]")
    edit(copy / "params.yaml", "source: embedded ", "source: files ")
    edit(copy / "params.yaml", "  root: null ", "  root: glue ")
    (copy / "glue/WNLI").mkdir(parents=True)
    (copy / "glue/WNLI/dev.tsv").write_text("index\tsentence1\tsentence2\tlabel\n0\ta b\tc\t1\n")
    reader = """
from pathlib import Path
from stages.benchmarks import glue, metrics
from stages.schema.settings import load_settings
from stages.report import names
from stages.tasks.glue import read_original
from stages.finetuning.stage import plan_runs
plan_runs(load_settings(), load_settings().list_finetuned())
task = glue.TASKS[load_settings().tasks.names[-1]]
frame = read_original(Path("."), task, task.splits[1]).frame
print(names.name_key("wnli"), *frame.iloc[0], metrics.compute_metrics("wnli", [1], frame["label"]), sep="|")
"""
    assert run(copy, "python", "-c", reader) == "WNLI|0|a b|c|1|{'accuracy': 1.0}\n"


def test_a_stage_is_a_folder_and_an_entry_of_dvc_yaml(copy):
    (copy / "stages/lengths").mkdir()
    (copy / "stages/lengths/__init__.py").touch()
    (copy / "stages/lengths/stage.py").write_text(
        '"""Measures one thing."""\n'
        "from stages.files import observations\n"
        "from stages.files.observations import Observation\n\n\n"
        "def main(settings):\n"
        '    row = Observation(stage="lengths", metric="sum", value=3.0, operator="original", size="tiny")\n'
        '    observations.write(observations.find_file("lengths"), [row])\n'
        "    return {}\n"
    )
    edit(
        copy / "dvc.yaml",
        "  timing:\n",
        "  lengths:\n    cmd: python -m stages lengths\n    deps: [stages/lengths]\n"
        "    outs: [data/observations/lengths.csv, data/runs/lengths.json]\n\n  timing:\n",
    )
    run(copy, "python", "-m", "stages", "scale", "laptop")
    run(copy, "python", "-m", "stages", "lengths")
    reader = """
from stages.analysis import inputs
from stages.files import observations
print("lengths" in inputs.list_further_stages(), *observations.read([observations.find_file("lengths")])["value"])
"""
    assert run(copy, "python", "-c", reader) == "True 3.0\n"
