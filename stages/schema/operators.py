"""The attributes of all operators, such as name and equation, without an import of torch."""

import ast
import runpy
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from stages.files.quoting import quote_value
from stages.schema.names import require_text

# An import of the package would import torch.
_LOADED = runpy.run_path(str(Path(__file__).parents[1] / "attention" / "catalogue.py"))
CATALOGUE = _LOADED["CATALOGUE"]
Description = _LOADED["Description"]


def describe_operators(users_file: Path | None = None, listed: Collection[str] = ()) -> dict[str, Any]:
    """Describes all operators by name, first the operators of this repository, then of a user's file, if any.

    Every class with a literal `name` is an operator. Attributes may be inherited, except `equation` and `source`.
    A user's operator that has a mistake is left out, unless the name is in `listed`, the operators of the run.

    Raises:
        ValueError: the user's file is no Python, or a listed operator there lacks an attribute or has a wrong value or
            the name of another operator.
    """
    operators = {description.name: description for description in CATALOGUE.values()}
    if not users_file or not users_file.exists():
        return operators
    # attributes by name of the class
    classes = {name: vars(description) for name, description in CATALOGUE.items()}
    for node in _parse_classes(users_file):
        literals = _read_literals(node)
        attributes = {}
        # in Python's order: the first base wins over later bases, and the class over all bases
        for base in reversed(node.bases):
            attributes.update(classes.get(ast.unparse(base), {}))
        # another operator's equation and source would be a wrong citation
        attributes.update({"equation": None, "source": None}, **literals)
        classes[node.name] = attributes
        if "name" not in literals:
            continue
        name = literals["name"]
        try:
            operators[name] = _describe_operator(attributes, f"{users_file}: class {node.name}", operators)
        except ValueError:
            if name in listed:
                raise
    return operators


def _parse_classes(file: Path) -> list[ast.ClassDef]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), file.name)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{file}: not Python: {quote_value(error)}; correct the file") from None
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def _read_literals(node: ast.ClassDef) -> dict[str, Any]:
    """Reads the literal attributes of a class, such as {"name": "shared"}."""
    literals = {}
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            # A computed value is no attribute of the description.
            with suppress(ValueError, TypeError):
                literals[ast.unparse(target)] = ast.literal_eval(statement.value)
    return literals


def _describe_operator(attributes: dict[str, Any], place: str, taken: Collection[str]) -> Any:
    """Builds the description of a user's operator from the attributes by name.

    `place` begins error messages; `taken` are the names of other operators.
    """
    values = {}
    for name, kind in Description.__annotations__.items():
        # the default, if any, is an attribute of the class Description
        value = attributes.get(name, getattr(Description, name, None))
        if value is None:
            raise ValueError(f"{place}: {name} is missing; give a literal value")
        if kind is str and not isinstance(value, str):
            raise ValueError(f"{place}: {name} is {quote_value(value)}, expected a text")
        values[name] = value
    require_text(values["name"], f"{place}: name: ")
    if values["name"] in taken:
        raise ValueError(f"{place}: {quote_value(values['name'])} is an operator already; choose another name")
    return Description(**values)
