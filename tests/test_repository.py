"""The rules of CONTRIBUTING.md that a test can hold."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
TESTS = sorted((ROOT / "tests").glob("test_*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ADDRESSES = PROJECT["urls"]
# The files that may name the repository by an absolute address; reports/pages fills in the addresses of pyproject.toml.
ADDRESSED = (
    "*.md",
    "CITATION.cff",
    ".dvc/config",
    ".devcontainer/*",
    ".github/workflows/*",
    "reports/pages/*",
    "reports/examples/**/*.md",
    "stages/**/*.md",
)
OPERATORS = sorted((ROOT / "stages/attention").glob("*.py"))
REQUIREMENTS = sorted({*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())})


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


def read_pins() -> dict[str, str]:
    """Reads constraints.txt, whose lines may name exact versions only, as {"torch": "2.13.0"}."""
    pins = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        pin = Requirement(line)
        [version] = pin.specifier
        assert version.operator == "==" and not pin.url and not pin.extras
        pins[canonicalize_name(pin.name)] = version.version
    return pins


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_every_requirement_has_a_pin_that_satisfies_it(requirement):
    wanted = Requirement(requirement)
    # an extra that names another extra of this project
    if wanted.name != PROJECT["name"]:
        assert read_pins()[canonicalize_name(wanted.name)] in wanted.specifier


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


def list_addresses(text: str) -> list[str]:
    """Lists the web addresses of a text that contain the name of the project."""
    addresses = re.findall(r"https?://[^\s<>()\"'`\]]+", text)
    return [address.rstrip(".,:;") for address in addresses if PROJECT["name"] in address]


def test_every_address_of_the_repository_follows_from_pyproject():
    codespaces = ADDRESSES["Repository"].replace("github.com", "codespaces.new")
    known = "|".join(re.escape(address) for address in (*ADDRESSES.values(), codespaces))
    expected = re.compile(rf"({known})(?![\w-])")
    different = []
    for pattern in ADDRESSED:
        for path in sorted(ROOT.glob(pattern)):
            addresses = list_addresses(path.read_text(encoding="utf-8"))
            different += [(path.name, address) for address in addresses if not expected.match(address)]
    assert different == []


def test_the_citation_names_the_addresses_of_pyproject():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    named = {"Repository": citation["repository-code"], "Documentation": citation["url"]}
    assert named == ADDRESSES


def test_badges_of_the_readme_belong_to_workflows_of_the_repository():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = re.findall(r"\.\./actions/workflows/([\w.-]+)", readme)
    assert names
    for name in names:
        assert (ROOT / ".github/workflows" / name).is_file()
    # the branch and the file that .ci/badge.py writes
    assert "../../raw/badges/executed.svg" in readme


@pytest.mark.parametrize("path", ["stages/README.md", ".devcontainer/devcontainer.json"])
def test_the_commands_that_install_pytorch_name_the_pinned_version(path):
    versions = re.findall(r"\btorch==([\d.]+)", (ROOT / path).read_text(encoding="utf-8"))
    assert versions
    assert set(versions) == {read_pins()["torch"]}
