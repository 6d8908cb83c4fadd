"""The published pages: rendered from their CSV files, with links that lead somewhere, for the pinned environment."""

import importlib.metadata
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stages.tools import pages
from tests.places import ROOT

EXAMPLES = ROOT / "reports/examples"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
READ = ("*.md", "stages/**/*.md", "data/*/README.md", "reports/examples/**/*.md", "reports/examples/**/*.html")
PAGES = sorted(set(chain.from_iterable(ROOT.glob(pattern) for pattern in READ)))


@pytest.fixture(autouse=True)
def in_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_is_the_rendering_of_its_template(page):
    assert pages.render(page) == (ROOT / pages.PAGES[page]).read_text()


def test_a_number_that_a_table_lacks_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"english/contrasts\.csv: 0 rows with .*'nothing'"):
        pages.look_up_contrast("english", "nothing", "loss=5.5")


def list_anchors(page: Path) -> set[str]:
    """Lists the anchors of a page: ids in HTML; the headings of Markdown in the form of a code host."""
    text = page.read_text()
    anchors = set(re.findall(r'\bid="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchors.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return anchors


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files_and_headings(page):
    text = page.read_text()
    faults = []
    for link in chain(*re.findall(r'\]\(([^)\s]+)\)|(?:href|src)="([^"]+)"', text)):
        path, _, anchor = link.partition("#")
        # `../../actions` of README.md is a page of the code host
        if not link or ":" in path or (page.parent == ROOT and path.startswith("../../")):
            continue
        target = page.parent / path if path else page
        outside = page.is_relative_to(EXAMPLES) and not target.resolve().is_relative_to(EXAMPLES)
        lacking = not target.exists() or (anchor and target.is_file() and anchor not in list_anchors(target))
        if outside or lacking:
            faults.append(link)
    for address in re.findall(rf"https?://[\w./-]*{PROJECT['name']}[\w./-]*", text):
        if not address.replace("codespaces.new", "github.com").startswith(tuple(PROJECT["urls"].values())):
            faults.append(address)
    assert faults == []


def test_the_pins_satisfy_the_requirements_and_are_the_installed_versions():
    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition(";")[0].partition("==")
            pins[canonicalize_name(name)] = version.strip()
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for requirement in map(Requirement, chain(*groups)):
        if requirement.name == PROJECT["name"]:
            continue
        version = pins[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, requirement
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            # an extra, or a package for other versions of Python
            continue
        assert installed.partition("+")[0] == version, (
            f"pip install -c constraints.txt -e '.[test]': {requirement.name}"
        )
    for page in ("stages/README.md", ".devcontainer/devcontainer.json"):
        assert set(re.findall(r"\btorch==([\d.]+)", (ROOT / page).read_text())) == {pins["torch"]}
    package = (ROOT / "stages/attention/README.md").read_text()
    for name, version in re.findall(r"\| ([a-z-]+) ([\d.]+) \|", package):
        assert version == pins[name], name
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {citation["repository-code"], citation["url"]} == set(PROJECT["urls"].values())
