"""The rules of CONTRIBUTING.md that a test can hold, and the numbers that the README takes from a report."""

import ast
import sys
from pathlib import Path

import pandas as pd
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


def test_the_readme_has_the_verdicts_and_numbers_of_the_studies_that_it_shows():
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("−", "-")
    tables = ROOT / "reports/examples/plateau/tables"
    tests = pd.read_csv(tables / "plateau_tests.csv").set_index(["question", "term"])
    places = pd.read_csv(tables / "plateau_places.csv", dtype={"place": str}).set_index(["question", "term", "place"])
    names = {
        "symmetric": "symmetric",
        "pairwise": "pairwise",
        "shared": "shared",
        "tied_qkv": "one matrix for all three",
    }
    for term, name in names.items():
        [line] = [line for line in readme.splitlines() if line.startswith(f"| {name} ") and line.count("|") == 8]
        row, source = tests.loc[("operator", term)], tests.loc[("source", term)]
        numbers = f"{row['difference']:.0f} ({row['low']:.0f} to {row['high']:.0f})"
        singly = [f"{places.loc[('operator', term, place), 'difference']:.0f}" for place in ("0.05", "0.3", "1")]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[1:6] == [numbers, *singly, row["verdict"]]
        assert cells[6].startswith(f"{source['runs'] - source['never']} of {source['runs']}")
    for row in pd.read_csv(ROOT / "reports/examples/files/tables/overview.csv").itertuples():
        name = names.get(row.operator, row.operator)
        [line] = [line for line in readme.splitlines() if line.startswith(f"| {name} |") and line.count("|") == 5]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[1] == f"{row.glue_score:.1f}"
        if row.operator != "original":
            assert cells[2:] == [f"{row.difference:.1f} ({row.low:.1f} to {row.high:.1f})", row.verdict]
