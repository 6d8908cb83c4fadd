"""dvc.yaml is complete: every stage lists code and parameters, so that an edit reruns the right stages."""

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stages.command_line import build_parser
from stages.files.paths import CHECKED
from stages.runner.fingerprints import find_closure, find_imported_files
from stages.runner.pipeline import list_outputs, read_pipeline
from stages.schema.settings import Settings
from tests.places import ROOT
from tests.processes import run

STAGES = read_pipeline()
# for the attributes of operators in the text of the report; not run
READ = {"report": {"stages/attention"}}
# changes how long a stage takes, and no result
EXEMPT = {"workers"}


def find_source(stage: str) -> Path:
    return ROOT / "stages" / stage / "stage.py"


def find_folder(file: Path) -> str:
    return file.parent.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_lists_the_folders_of_all_code_that_it_runs_and_no_other(stage):
    listed = [dep for dep in STAGES[stage]["deps"] if dep.startswith("stages/")]
    run = {find_folder(file) for file in find_closure(find_source(stage))}
    assert sorted(listed) == sorted(run | READ.get(stage, set()))


def list_settings_read(path: Path) -> Iterator[str]:
    """Yields `pretraining.steps` for every `settings.pretraining.steps` in a file, and also `pretraining`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            if text.startswith("settings.") and text.replace(".", "").isidentifier():
                yield text.removeprefix("settings.")


@pytest.mark.parametrize("stage", [name for name in STAGES if "params.yaml" not in STAGES[name]["deps"]])
def test_a_stage_reads_only_parameters_that_it_lists(stage):
    listed = [param.split("${")[0].rstrip(".") for param in STAGES[stage].get("params", [])]
    # a section of which a part is listed may be read itself, on the way to the part
    allowed = EXEMPT.union(listed, (param.split(".")[0] for param in listed))
    for path in sorted(find_source(stage).parent.glob("*.py")):
        for chain in list_settings_read(path):
            top = chain.split(".")[0]
            # a function that takes one section calls it `settings`, too
            if top in Settings.model_fields:
                assert chain in allowed or any(chain.startswith(f"{param}.") for param in listed), (path, chain)


def test_every_stage_is_a_folder_and_no_shell_reads_a_value_of_params_yaml():
    assert {path.parent.name for path in (ROOT / "stages").glob("*/stage.py")} == set(STAGES)
    for stage, entry in STAGES.items():
        assert entry["cmd"] == f"python -m stages {stage}"


def test_the_help_lists_every_stage_and_command():
    lines = build_parser().format_help().splitlines()
    # a name is indented by four spaces, its help by more
    listed = {line.split()[0] for line in lines if re.match(r" {4}\w", line)}
    assert listed == {"scale", "verify", *STAGES}


def test_params_yaml_is_checked_before_any_other_stage_runs():
    after_check = {CHECKED}
    for stage, entry in STAGES.items():
        if stage != "settings":
            assert any(dep in after_check or dep.parent in after_check for dep in map(Path, entry["deps"])), stage
        after_check.update(list_outputs(stage))


def reproduce(folder: Path, **stage) -> None:
    """Runs a stage of DVC in a new repository with our configuration of DVC."""
    (folder / ".dvc").mkdir()
    for name in (".dvcignore", ".dvc/config"):
        shutil.copyfile(ROOT / name, folder / name)
    (folder / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"s": stage}}))
    run(folder, "git", "init", "--quiet")
    run(folder, "dvc", "repro", "--quiet")


def test_an_edit_in_place_of_an_output_does_not_reach_dvcs_cache(tmp_path):
    """Outputs are second names of the files of jobs; DVC's cache must be no third name."""
    command = "mkdir -p jobs data && printf whole > jobs/a && chmod 444 jobs/a && ln jobs/a data/a"
    reproduce(tmp_path, cmd=command, outs=["data"])
    for name in ("data/a", "jobs/a"):
        (tmp_path / name).chmod(0o644)
        with (tmp_path / name).open("a") as file:
            file.write(", and edited")
    run(tmp_path, "dvc", "checkout", "--force", "--quiet")
    assert (tmp_path / "data/a").read_text() == "whole"


LEFT_BEHIND = (".DS_Store", "._name.jsonl.zst", ".name.py.swp", ".#name.py", "#name.py#", "name.py~", "Thumbs.db")


def test_no_file_that_an_editor_or_a_desktop_leaves_reruns_a_stage(tmp_path):
    folder = tmp_path / "stages/attention"
    folder.mkdir(parents=True)
    (folder / "name.py").touch()
    reproduce(tmp_path, cmd="true", deps=["stages/attention"])
    for name in LEFT_BEHIND:
        (folder / name).touch()
    assert run(tmp_path, "dvc", "status", "--json").strip() == "{}"
    (folder / "other.py").touch()
    assert "stages/attention" in run(tmp_path, "dvc", "status", "--json")


def list_modules() -> Iterator[tuple[str, Path, set[str]]]:
    """Yields for every module: the folder below `stages`, the file, and the imported folders of `stages`."""
    for file in (ROOT / "stages").rglob("*.py"):
        folders = {find_folder(other).removeprefix("stages/") for other in find_imported_files(file) - {file}}
        yield find_folder(file).removeprefix("stages/"), file, folders


def test_a_stage_imports_no_other_stage_and_shared_code_imports_no_stage_and_no_tool():
    for folder, file, folders in list_modules():
        if not folder.startswith("tools"):
            assert not folders & (set(STAGES) - {folder}), file
            assert not any(other.startswith("tools") for other in folders), file


def test_no_module_imports_a_name_from_an_init_file_as_no_fingerprint_covers_it():
    for file in (ROOT / "stages").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                base = file.parents[node.level - 1] if node.level else ROOT
                package = base.joinpath(*(node.module or "").split("."))
                if package.is_dir():
                    assert all((package / f"{alias.name}.py").exists() for alias in node.names), (file, package)
            elif isinstance(node, ast.Import):
                assert not any(ROOT.joinpath(*alias.name.split(".")).is_dir() for alias in node.names), file


BELOW = {"files": [], "schema": ["files"], "runner": ["files", "schema"]}


@pytest.mark.parametrize("package", BELOW)
def test_the_packages_that_all_others_use_import_only_packages_below_them(package):
    allowed = tuple(f"stages.{name}" for name in (package, *BELOW[package]))
    for file in (ROOT / "stages" / package).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("stages"):
                assert node.module.startswith(allowed), (file, node.module)


def test_evidence_audit_analysis_and_report_never_import_torch():
    for package in ("evidence", "audit", "analysis", "report"):
        for file in (ROOT / "stages" / package).glob("*.py"):
            for other in find_closure(file):
                assert "import torch" not in other.read_text(), (file, other)
