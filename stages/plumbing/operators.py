"""What the operators say of themselves: name, equation, source, settings. Read from their text, without torch.

Every class with a literal `name` is an operator; what it does not say, its base class says. So the settings can be
checked, and the report can print equations, in a process that needs no torch.
"""

import ast
from dataclasses import dataclass, fields
from pathlib import Path

from stages.plumbing.files import read_once

FOLDER = Path(__file__).parents[1] / "attention"
TEXTS = ("name", "equation", "source", "label")


@dataclass(frozen=True)
class Description:
    """name: in params.yaml. exportable: a stock BERT can be made of it. label, look: in the report (base.py).

    starts: values of a variant's `start`, the source's first. scores_alone: the parameters that serve the scores alone,
    which a variant's `score_rate` is for. file: where the class stands.
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
    """Reads the descriptions of all operators, those of this repository first.

    Args:
        users_file: a file with operators of the user's own; where there is no such file, there are none.

    Raises:
        ValueError: the file is no Python, one of its operators lacks an equation or a source, or has the
            name of another, or one of its classes is called as one of this repository.
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


@read_once(1000)  # settings are checked, and variants looked up, again and again
def _classes(file: Path) -> dict[str, tuple[list[str], dict]]:
    """By class: the names of its base classes, and its attributes that are literals, beside them its file."""
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
    values = {}
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        try:
            values[name] = ast.literal_eval(value)
        except ValueError:  # computed, so not of the description
            continue
    return values


def _inherited(label: str, classes: dict, below: tuple[str, ...] = ()) -> dict:
    """The literals of a class and of its base classes, of which the class itself and the first base go first.

    Args:
        label: name of the class.
        classes: of all files, as `_classes` gives them.
        below: the classes whose base it is.
    """
    bases, literals = classes.get(label, ([], {}))
    if label in below:
        raise ValueError(f"{literals['file']}: class {label}: is its own base class; give one of them another name")
    values = {}
    for base in reversed(bases):
        values |= _inherited(base, classes, (*below, label))
    return values | literals
