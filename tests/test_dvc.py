"""dvc.yaml says what is true: every stage's code and parameters are listed, so that an edit reruns what it must."""

import ast
from pathlib import Path

import pytest
import yaml

from stages.settings import Settings

ROOT = Path(__file__).parents[1]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
PLUMBING = {f"stages/{name}.py" for name in ("settings", "sections", "observations", "files", "jobs", "command")}
EXEMPT = {"workers"}  # changes how long a stage takes, not its result


def module_file(name: str) -> Path | None:
    path = ROOT / Path(*name.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.exists():
            return candidate
    return None


def imported(path: Path) -> set[Path]:
    """Files of ours that a file imports, at its top or inside its functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("stages"):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("stages")}
    return {file for name in names if (file := module_file(name))}


def closure(path: Path) -> set[Path]:
    found, new = set(), {path}
    while new:
        found |= new
        new = {file for source in new for file in imported(source)} - found
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_lists_all_code_that_it_runs(stage):
    listed = [dep for dep in STAGES[stage]["deps"] if dep.startswith("stages/")]
    used = {file.relative_to(ROOT).as_posix() for file in closure(ROOT / "stages" / f"{stage}.py")}
    used = {file for file in used if file not in PLUMBING and not file.endswith("__init__.py")}
    unlisted = {file for file in used if not any(file == dep or file.startswith(f"{dep}/") for dep in listed)}
    assert not unlisted


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_lists_no_code_that_it_does_not_run(stage):
    used = {file.relative_to(ROOT).as_posix() for file in closure(ROOT / "stages" / f"{stage}.py")}
    for dep in STAGES[stage]["deps"]:
        if dep.startswith("stages/"):
            assert any(file == dep or file.startswith(f"{dep}/") for file in used), dep


def chains(path: Path):
    """Every attribute chain that begins at `settings`: `settings.pretraining.steps` gives `pretraining.steps`."""
    tree = ast.parse(path.read_text())
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            parts, root = [], node
            while isinstance(root, ast.Attribute):
                parts.insert(0, root.attr)
                root = root.value
            if isinstance(root, ast.Name) and root.id == "settings":
                yield ".".join(parts)


@pytest.mark.parametrize("stage", [name for name in STAGES if name != "report"])  # the report depends on params.yaml
def test_a_stage_reads_only_parameters_that_it_lists(stage):
    listed = {param.split("${")[0].rstrip(".") for param in STAGES[stage].get("params", [])}
    for chain in chains(ROOT / "stages" / f"{stage}.py"):
        top = chain.split(".")[0]
        if top not in Settings.model_fields:
            continue  # a function that was handed one section calls it `settings` too
        covered = any(
            chain == param or chain.startswith(f"{param}.") or param.split(".")[0] == chain for param in listed
        )
        assert covered or top in EXEMPT, f"{stage} reads {chain}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_the_module_of_its_name_and_has_help(stage):
    source = (ROOT / "stages" / f"{stage}.py").read_text()
    assert STAGES[stage]["cmd"].startswith(f"python -m stages.{stage}")
    assert f'command.parser("{stage}", __doc__)' in source and "command.run(main)" in source
    assert ast.get_docstring(ast.parse(source))


def test_stage_modules_never_import_each_other_and_packages_never_import_stages():
    stage_files = {ROOT / "stages" / f"{name}.py" for name in STAGES}
    for source in (ROOT / "stages").rglob("*.py"):
        assert not imported(source) & (stage_files - {source}), source


def test_walls_between_packages_stand():
    for source in (ROOT / "stages" / "attention").glob("*.py"):
        assert all(
            file.parent.name in ("attention", "stages") and file.name != "settings.py" for file in imported(source)
        )
    for package in ("evidence", "presentation"):
        for source in (ROOT / "stages" / package).glob("*.py"):
            for file in closure(source):
                assert "import torch" not in file.read_text(), (source, file)
