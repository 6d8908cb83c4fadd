"""Reads what the operators say of themselves (name, equation, source, settings) from the text of their classes.

Every class with a literal `name` is an operator; an attribute that it does not define is that of its base class. No
class is imported, so that the settings can be checked, and the report can print equations, without torch.
"""

import ast
from dataclasses import dataclass, fields
from pathlib import Path

from stages.files.storage import read_once

FOLDER = Path(__file__).parents[1] / "attention"
TEXTS = ("name", "equation", "source", "label")  # fields of Description that must be texts


@dataclass(frozen=True)
class Description:
    """What one operator says of itself; base.py in stages/attention explains each attribute.

    name: in params.yaml. equation, source, label, look: for the report. exportable: whether a stock BERT can be made of
    it. starts: the values that a variant's `start` may have, that of the operator's source first. scores_alone: the
    parameters, by name, that serve the scores alone; `score_rate` sets their learning rate. file: of the class.
    """

    name: str
    equation: str
    source: str
    label: str
    look: tuple
    exportable: bool
    starts: tuple[str, ...]
    scores_alone: tuple[str, ...]
    file: Path


def described(users_file: Path | None = None) -> dict[str, Description]:
    """Reads the descriptions of all operators, by the operators' names, those of this repository first.

    users_file: with operators of the user's own; None, or a file that does not exist, adds none. ValueError where it is
    no Python; where an operator in it lacks an attribute of Description, has one of TEXTS that is no text, or has the
    name of another operator; and where a class in it is named like one of this repository, or is its own base.
    """
    classes, descriptions = {}, {}
    for file in [*sorted(FOLDER.glob("*.py")), *([users_file] if users_file and users_file.exists() else [])]:
        in_file = _classes(file)
        if taken := [label for label in in_file if label in classes]:
            raise ValueError(f"{file}: class {taken[0]}: another file has a class of this name; give it another")
        classes |= in_file
    for label, (_, literals) in classes.items():
        if "name" in literals:
            name, values = literals["name"], _inherited(label, classes)
            where = f"{values['file']}: class {label}:"
            if missing := [field.name for field in fields(Description) if field.name not in values]:
                raise ValueError(f"{where} no {', '.join(missing)}; give each as a literal")
            if odd := [key for key in TEXTS if not isinstance(values[key], str)]:
                raise ValueError(f"{where} {odd[0]} is {values[odd[0]]!r}, expected a text")
            if name in descriptions:
                raise ValueError(f"{where} {descriptions[name].file} has an operator {name!r} already")
            descriptions[name] = Description(**{field.name: values[field.name] for field in fields(Description)})
    return descriptions


@read_once(1000)  # files, more than there are; settings are checked, and variants looked up, again and again
def _classes(file: Path) -> dict[str, tuple[list[str], dict]]:
    """Returns for each class of a file, by name: the names of its base classes; its literals, and `file`, by name."""
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except SyntaxError as error:
        raise ValueError(f"{file}, line {error.lineno}: not Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # not UTF-8, a NUL byte, nested too deeply
        raise ValueError(f"{file}: not Python that can be read: {error}") from None
    return {
        node.name: ([base.id for base in node.bases if isinstance(base, ast.Name)], _literals(node) | {"file": file})
        for node in body
        if isinstance(node, ast.ClassDef)
    }


def _literals(node: ast.ClassDef) -> dict:
    """The attributes of a class, by name, whose values are literals; methods and computed values are left out."""
    values = {}
    for statement in node.body:
        match statement:  # NAME = VALUE, NAME: TYPE = VALUE; `NAME: TYPE` alone has None in place of an expression
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, TypeError):  # computed, or without a value, as {[]: 1}; so no part of the description
            continue
    return values


def _inherited(label: str, classes: dict, below: tuple[str, ...] = ()) -> dict:
    """Returns the literals of class `label` and its bases, by name; a class hides its bases, a base those listed later.

    A class that `classes` (of all files, as `_classes` returns them) lacks, such as nn.Module, has no literals.
    below: the names of the classes that led here as to their base, from which a circle is seen.
    """
    bases, literals = classes.get(label, ([], {}))
    if label in below:
        raise ValueError(f"{literals['file']}: class {label}: is its own base class; give one of them another name")
    values = {}
    for base in reversed(bases):
        values |= _inherited(base, classes, (*below, label))
    return values | literals
