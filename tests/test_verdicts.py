"""Words beside verdicts in our own tables, and no word of a verdict outside evidence/verdicts.py."""

import ast
import re
from collections.abc import Iterator

import jinja2
import pandas as pd
import pytest
import yaml
from jinja2 import nodes

from stages.evidence.verdicts import AUDITED, Difference, Statement
from stages.report import latex, own_tables
from tests.places import ROOT

TEMPLATES = ROOT / "reports/templates"
WORDS = {str(word) for word in (*Difference, *Statement, *AUDITED.values())}
HTML, LATEX = jinja2.Environment(), latex.make_environment(TEMPLATES)
ROW = {
    "quantity": "loss",
    "source": "reproduced",
    "size": "tiny",
    "at": "validation_loss",
    "arm": "shared",
    "reference": "original",
    "estimate": 0.2,
    "n": 3,
    "detectable": 0.4,
    "reason": "",
}


def build_losses(*changes: dict) -> list[str]:
    """Builds the table of losses from rows with `changes`; returns the cells of verdicts."""
    frame = pd.DataFrame([ROW | change for change in changes])
    grid = own_tables.build_table("loss_differences", lambda _: frame, simultaneous="simultaneous 95 %")
    [place] = [number for number, heading in enumerate(grid.headings) if heading.label == "Verdict"]
    return [group.lines[0].values[place].whole for group in grid.groups]


def test_a_reason_stands_beside_a_verdict_that_needs_a_reason():
    higher = {"low": 0.1, "high": 0.5, "verdict": Difference.HIGHER, "tests": 2, "reason": "above zero"}
    flipped = higher | {"reason": "above zero; joint sign flips disagree (p = 0.063)"}
    missing = higher | {"low": None, "verdict": Difference.TOO_FEW, "reason": "an interval takes 3 seeds"}
    assert build_losses(higher, flipped, missing) == [
        Difference.HIGHER,
        f"{Difference.HIGHER} (joint sign flips disagree (p = 0.063))",
        f"{Difference.TOO_FEW} (an interval takes 3 seeds)",
    ]


def list_scalars(content: object) -> Iterator[str]:
    """Lists the keys and texts of a YAML document."""
    if isinstance(content, dict):
        yield from map(str, content)
        content = list(content.values())
    if isinstance(content, list):
        for part in content:
            yield from list_scalars(part)
    elif isinstance(content, str):
        yield content


def list_template_texts(text: str, environment: jinja2.Environment) -> Iterator[str]:
    """Lists the constants of a Jinja template, and the verdicts of several words in the text between."""
    tree = environment.parse(text)
    yield from (str(constant.value) for constant in tree.find_all(nodes.Const))
    for data in tree.find_all(nodes.TemplateData):
        line = " ".join(data.data.lower().split())
        yield from (word for word in WORDS if " " in word and re.search(rf"\b{word}\b", line))


@pytest.mark.parametrize("path", sorted((ROOT / "stages").rglob("*.py")), ids=str)
def test_no_word_of_a_verdict_is_typed_in_python(path):
    if path.name == "verdicts.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.Constant) and node.value in WORDS), f"line {node.lineno}"


@pytest.mark.parametrize("path", [*(ROOT / "stages").rglob("*.yaml"), *TEMPLATES.glob("*.yaml")], ids=str)
def test_no_word_of_a_verdict_is_typed_in_yaml(path):
    for text in list_scalars(yaml.safe_load(path.read_text())):
        assert text not in WORDS
        if path.parent == TEMPLATES:
            assert not WORDS & set(list_template_texts(text, HTML)), text


@pytest.mark.parametrize("path", [*TEMPLATES.glob("*.[chjmt]*"), *(ROOT / "reports/pages").glob("*.md")], ids=str)
def test_no_word_of_a_verdict_is_typed_in_a_template(path):
    environment = LATEX if path.suffix == ".tex" else HTML
    assert not WORDS & set(list_template_texts(path.read_text(), environment))
