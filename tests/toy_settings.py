"""Settings with edits by key; every key of nested settings, and another value for each."""

from collections.abc import Iterator
from typing import Any

from stages.files.yaml_files import read_yaml
from tests.places import ROOT

LAPTOP = ROOT / "stages/scales/laptop.yaml"


def edit_laptop(edits: dict[str, object]) -> dict:
    """Returns the parameters of scale laptop with other values by key, such as `pretraining.steps`."""
    params: Any = read_yaml(LAPTOP)
    for key, value in edits.items():
        *sections, name = key.split(".")
        section = params
        for part in sections:
            section = section[part]
        section[name] = value
    return params


def list_leaves(tree: dict, above: str = "") -> Iterator[tuple[str, dict, str]]:
    """Yields (key, record that holds the key, name in that record) of every setting."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from list_leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", tree, name


def make_other(value: object) -> object:
    """Returns another value of the same kind, sensible or not."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return 2 * value or 0.5
        case str():
            return f"{value}_other"
        case None:
            return 7
        case dict():
            return {name: make_other(item) for name, item in value.items()}
        case list() | tuple():
            return type(value)([*value, make_other(value[-1]) if value else "other"])
    # a record of the schema
    return value
