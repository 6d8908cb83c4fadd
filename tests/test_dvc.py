"""dvc.yaml says what is true: every stage's code and parameters are listed, so that an edit reruns what it must."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stages.__main__ import parser
from stages.runner import fingerprints, handover
from stages.runner.fingerprints import closure
from stages.runner.progress import touch
from stages.schema.settings import Settings

ROOT = Path(__file__).parents[1]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
READ = {"report": {"stages/attention"}}  # for the attributes of operators in its text; not run
EXEMPT = {"workers"}  # changes how long a stage takes, not its result


def source(stage: str) -> Path:
    return ROOT / "stages" / stage / "stage.py"


def folder_of(file: Path) -> str:
    return file.parent.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_lists_the_folders_of_all_code_that_it_runs_and_no_other(stage):
    listed = [dep for dep in STAGES[stage]["deps"] if dep.startswith("stages/")]
    assert len(listed) == len(set(listed))
    assert set(listed) == {folder_of(file) for file in closure(source(stage))} | READ.get(stage, set())
    assert all((ROOT / dep).is_dir() for dep in listed)


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


@pytest.mark.parametrize("stage", [name for name in STAGES if "params.yaml" not in STAGES[name]["deps"]])
def test_a_stage_reads_only_parameters_that_it_lists(stage):
    listed = {param.split("${")[0].rstrip(".") for param in STAGES[stage].get("params", [])}
    for chain in (chain for path in sorted(source(stage).parent.glob("*.py")) for chain in chains(path)):
        top = chain.split(".")[0]
        if top not in Settings.model_fields:
            continue  # a function that was handed one section calls it `settings` too
        covered = any(
            chain == param or chain.startswith(f"{param}.") or param.split(".")[0] == chain for param in listed
        )
        assert covered or top in EXEMPT, f"{stage} reads {chain}"


def test_every_stage_is_a_folder_and_no_shell_reads_a_value_of_params_yaml():
    assert {path.parent.name for path in (ROOT / "stages").glob("*/stage.py")} == set(STAGES)
    for stage, entry in STAGES.items():
        assert entry["cmd"] == f"python -m stages {stage}"


def test_params_yaml_is_checked_before_any_other_stage_runs():
    checked = {"settings"}
    for stage, entry in STAGES.items():  # in an order in which each comes after what it reads (test_progress.py)
        outputs = [path for maker in checked for path in handover.paths(STAGES[maker]["outs"], {})]
        assert stage in checked or any(touch(path, outputs) for path in handover.paths(entry["deps"], {})), stage
        checked.add(stage)


def test_an_edit_in_place_of_an_output_does_not_reach_dvcs_cache(tmp_path):
    """Outputs are second names of what jobs have left; DVC's cache must be no third."""
    command = "mkdir -p jobs data && printf whole > jobs/a && chmod 444 jobs/a && ln jobs/a data/a"
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"s": {"cmd": command, "outs": ["data"]}}}))
    (tmp_path / ".dvc").mkdir()
    shutil.copyfile(ROOT / ".dvc" / "config", tmp_path / ".dvc" / "config")
    dvc = str(Path(sys.executable).with_name("dvc"))
    for words in (["git", "init", "--quiet"], [dvc, "repro", "--quiet"]):
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    for name in ("data/a", "jobs/a"):
        (tmp_path / name).chmod(0o644)
        with (tmp_path / name).open("a") as file:
            file.write(", and edited")
    subprocess.run([dvc, "checkout", "--force", "--quiet"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "data" / "a").read_text() == "whole"


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_help(stage, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args([stage, "--help"])
    assert ast.get_docstring(ast.parse(source(stage).read_text())) in capsys.readouterr().out


def packages() -> list[tuple[str, Path, set[str]]]:
    """Of every module: its folder, itself, and the folders that it imports from, all below `stages`."""
    return [
        (folder_of(file).removeprefix("stages/"), file, {folder_of(other).removeprefix("stages/") for other in found})
        for file in (ROOT / "stages").rglob("*.py")
        for found in [fingerprints.imported(file) - {file}]
    ]


def test_no_module_takes_from_a_package_what_is_no_module_as_no_fingerprint_covers_its_init():
    for file in (ROOT / "stages").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                base = file.parents[node.level - 1] if node.level else ROOT
                package = base.joinpath(*(node.module or "").split("."))
                if package.is_dir():
                    assert all((package / f"{alias.name}.py").exists() for alias in node.names), (file, package)
            elif isinstance(node, ast.Import):
                assert not any(ROOT.joinpath(*alias.name.split(".")).is_dir() for alias in node.names), file


def test_a_stage_imports_no_other_stage_and_what_is_shared_imports_no_stage():
    for folder, file, imported in packages():
        if not folder.startswith("tools"):
            assert not imported & (set(STAGES) - {folder}), file


def test_nothing_imports_a_tool():
    for folder, file, imported in packages():
        assert folder.startswith("tools") or not any(other.startswith("tools") for other in imported), file


BELOW = {"attention": [], "files": [], "schema": ["files"], "runner": ["files", "schema"]}


@pytest.mark.parametrize("package", BELOW)
def test_the_packages_that_all_others_use_import_only_what_is_below_them(package):
    allowed = tuple(f"stages.{name}" for name in (package, *BELOW[package]))
    for file in (ROOT / "stages" / package).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and not node.level and node.module.startswith("stages"):
                assert node.module.startswith(allowed), (file, node.module)


def test_evidence_audit_analysis_and_report_never_import_torch():
    for folder, file, _ in packages():
        if folder in ("evidence", "audit", "analysis", "report"):
            for other in closure(file):
                assert "import torch" not in other.read_text(), (file, other)
