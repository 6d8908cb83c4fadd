"""The rules of CONTRIBUTING.md that a test can hold."""

import ast
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
TESTS = sorted((ROOT / "tests").glob("test_*.py"))


def imported(path: Path) -> set[str]:
    """The last names of all modules that a file imports, and of what it imports from them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.rpartition(".")[2] for name in names}


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_no_test_imports_another(path):
    assert not imported(path) & {other.stem for other in TESTS}


def test_the_operators_need_torch_and_transformers_alone():
    for path in (ROOT / "stages/common/attention").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            absolute = isinstance(node, ast.ImportFrom) and not node.level
            names = [node.module] if absolute else [a.name for a in node.names] if isinstance(node, ast.Import) else []
            for name in {name.split(".")[0] for name in names}:
                assert name in {"stages", "torch", "transformers"} or name in sys.stdlib_module_names, (path, name)


def test_the_workflow_and_the_hooks_call_what_is_here():
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["checks"]["steps"] if "run" in step]
    assert commands == [".ci/run"] and (ROOT / ".ci/run").stat().st_mode & 0o111
    hooks = [
        hook
        for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
        for hook in repository["hooks"]
    ]
    assert {hook["entry"].split()[0] for hook in hooks} == {"ruff"}
