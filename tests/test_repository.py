"""The rules of CONTRIBUTING.md that a test can hold."""

import ast
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
    assert packages - sys.stdlib_module_names <= {"fewer_attention", "torch", "transformers"}


def test_the_workflow_and_the_hooks_call_the_checks_of_the_repository():
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["checks"]["steps"] if "run" in step]
    assert commands == [".ci/run"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    for repository in hooks["repos"]:
        for hook in repository["hooks"]:
            assert hook["entry"].startswith("ruff ")
