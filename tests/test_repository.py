"""The rules of CONTRIBUTING.md that a test can hold."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
TESTS = sorted((ROOT / "tests").glob("test_*.py"))
OPERATORS = sorted((ROOT / "stages/attention").glob("*.py"))


def list_imports(path: Path) -> list[str]:
    """Lists every absolute module that a file imports, and MODULE.NAME for every name from a module."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_no_test_imports_another(path):
    for name in list_imports(path):
        assert ".test_" not in name


@pytest.mark.parametrize("path", OPERATORS, ids=lambda path: path.stem)
def test_the_operators_need_only_torch_and_transformers(path):
    packages = {name.partition(".")[0] for name in list_imports(path)}
    # transformers itself requires safetensors and tokenizers
    needed = {"fewer_attention", "torch", "transformers", "safetensors", "tokenizers"}
    assert packages - sys.stdlib_module_names <= needed


@pytest.mark.parametrize("ends", ["true", "input", "false"])
def test_a_clone_has_the_bytes_of_the_repository_whatever_git_does_with_line_ends(ends, tmp_path):
    origin = tmp_path / "origin"
    contents = {"params.yaml": b"a: 1\nb: 2\n", "picture.png": b"\x89PNG\r\n\x1a\n\0", "table.csv": b"a,b\n1,2\n"}
    origin.mkdir()
    shutil.copyfile(ROOT / ".gitattributes", origin / ".gitattributes")
    for name, content in contents.items():
        (origin / name).write_bytes(content)
    as_somebody = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "--quiet"], ["add", "--all"], [*as_somebody, "commit", "--quiet", "--message", "files"]):
        subprocess.run(["git", *words], cwd=origin, check=True, capture_output=True)
    clone = ["git", "clone", "--quiet", "--config", f"core.autocrlf={ends}", origin, tmp_path / "clone"]
    subprocess.run(clone, check=True, capture_output=True)
    for name, content in contents.items():
        assert (tmp_path / "clone" / name).read_bytes() == content


def test_the_workflow_and_the_hooks_call_the_checks_of_the_repository():
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["checks"]["steps"] if "run" in step]
    assert commands == [".ci/run"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    for repository in hooks["repos"]:
        for hook in repository["hooks"]:
            assert hook["entry"].startswith("ruff ")
