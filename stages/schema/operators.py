"""Reads the attributes of operators, such as name, equation and source, from the text of the classes."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stages.files.quoting import quote_value
from stages.schema.names import require_text

FOLDER = Path(__file__).parents[1] / "attention"


@dataclass(frozen=True)
class Description:
    """Attributes of an operator's class, as stages/attention/base.py explains; `file` contains the class."""

    name: str
    equation: str
    source: str
    label: str
    look: tuple
    exportable: bool
    starts: tuple[str, ...]
    scores_alone: tuple[str, ...]
    file: Path


# Attributes by the name of the class, and operators by name
Classes = dict[str, dict[str, Any]]
Operators = dict[str, Description]


def describe_operators(users_file: Path | None = None) -> Operators:
    """Describes all operators by name, first the operators of this repository, then of a user's file, if any.

    Every class with a literal `name` is an operator. Other attributes may be inherited.

    Raises:
        ValueError: the user's file is no Python, or an operator there lacks an attribute or has a wrong value or name.
    """
    classes, operators = _read_repository()
    # copies, because the result of `_read_repository` is cached
    classes, operators = dict(classes), dict(operators)
    if users_file and users_file.exists():
        _read_file(users_file, classes, operators)
    return operators


@cache
def _read_repository() -> tuple[Classes, Operators]:
    classes, operators = {}, {}
    # in the order of the alphabet, every base class comes before its subclasses
    for file in sorted(FOLDER.glob("[!.]*.py")):
        _read_file(file, classes, operators)
    return classes, operators


def _read_file(file: Path, classes: Classes, operators: Operators) -> None:
    """Adds the classes of a Python file to `classes`, and operators also to `operators`."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise ValueError(f"{file}, line {error.lineno}: not Python: {error.msg}; correct the file") from None
    except ValueError as error:
        raise ValueError(f"{file}: not Python: {quote_value(error)}; correct the file") from None
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            literals = _read_literals(node)
            attributes = {}
            # a class hides its bases, and a base hides the bases listed after it
            for base in reversed(node.bases):
                attributes.update(classes.get(ast.unparse(base), {}))
            attributes.update(literals)
            classes[node.name] = attributes
            if "name" in literals:
                operator = _describe_operator(attributes, file, f"{file}: class {node.name}")
                if operator.name in operators:
                    other = operators[operator.name].file
                    raise ValueError(
                        f"{file}: class {node.name}: {other} has an operator {quote_value(operator.name)} already; "
                        "choose another name"
                    )
                operators[operator.name] = operator


def _read_literals(node: ast.ClassDef) -> dict[str, Any]:
    """Reads the literal attributes of a class, such as {"name": "shared"}."""
    literals = {}
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        try:
            literals[name] = ast.literal_eval(value)
        except (ValueError, TypeError):
            # A computed value is no attribute of the description.
            continue
    return literals


def _describe_operator(attributes: dict[str, Any], file: Path, place: str) -> Description:
    """Builds the description of an operator from the class's attributes by name; `place` begins error messages."""
    values: dict[str, Any] = {"file": file}
    for name, kind in Description.__annotations__.items():
        if name == "file":
            continue
        if name not in attributes:
            raise ValueError(f"{place}: {name} is missing; give a literal value")
        if kind is str and not isinstance(attributes[name], str):
            raise ValueError(f"{place}: {name} is {quote_value(attributes[name])}, expected a text")
        values[name] = attributes[name]
    require_text(values["name"], f"{place}: name: ")
    return Description(**values)
