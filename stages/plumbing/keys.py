"""What the report calls a key of params.yaml, and what the papers state of it: said where the schema defines the key.

A source is named by the letters of stages/scales/laptop.yaml: C is Courtois et al. and CC their released code, K
Kowsher et al., B the blog post and T the tutorial that it follows, D the draft section and V the paper that it follows.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, Field

# By letter: the source, and where data/published/protocol.yaml has its values
SOURCES = {
    "C": ("courtois2024", "stated"),
    "CC": ("courtois2024", "released_code"),
    "K": ("kowsher", "stated"),
    "B": ("hadamard_blog", "stated"),
    "T": ("hadamard_blog", "followed"),
    "D": ("aop", "stated"),
    "V": ("aop", "followed"),
}
PARTS = {  # parts of params.yaml of which one source alone has something
    "finetuning.courtois2024": "courtois2024",
    "finetuning.kowsher2025": "kowsher",
    "translation.protocols.blog": "hadamard_blog",
    "translation.protocols.draft": "aop",
}


def equal(value: Any, expected: Any) -> bool:
    """Whether a run has what a source states; the order of a list is nothing to it."""
    return sorted(value) == sorted(expected) if isinstance(expected, list) else value == expected


def covers(value: Any, expected: list) -> bool:
    """Whether a list has all that the source has."""
    return set(value) >= set(expected)


def count(value: Any, expected: int) -> bool:
    """Whether a list is as long as the source states."""
    return len(value) == expected


def contains(value: Any, expected: str) -> bool:
    """Whether a text has what the source states in it."""
    return expected in str(value)


@dataclass(frozen=True)
class Stated:
    """What a source has of a key.

    place: below the part of the protocol that SOURCES names; `{name}` is the key's last part.
    value: what the text there stands for; `...` where it is the value itself. compare: (value of a run, this value).
    also: keys that must be as the source states, too. name: of the key beside this source, where it has one of its own.
    """

    place: str
    value: Any = ...
    compare: Callable[[Any, Any], bool] = equal
    also: tuple[str, ...] = ()
    name: str = ""


OPEN = Stated("")  # the source leaves the key open, although it needs one


@dataclass(frozen=True)
class Key:
    """name: in the report; `{name}` is the key's last part in words, `{part}` the section's name.

    absent: what null means, where it is not all there is; with settings as `{key}`. only: keys, and the values without
    which this one has no effect. rule: of the filter, which reads the documents' metadata of that name. items: of a
    section whose names are free, those of which a source has something; every other name goes by this key itself.
    """

    name: str
    stated: Mapping[str, Stated]
    absent: str = ""
    only: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    items: Mapping[str, "Key"] | None = None


def described(name: str, *, absent: str = "", only=None, rule: str = "", items=None, **stated: Stated | str) -> Key:
    """A Key; `stated` has by the letters of SOURCES what each has of it, or the place alone."""
    places = {letter: Stated(it) if isinstance(it, str) else it for letter, it in stated.items()}
    return Key(name, places, absent, only or {}, rule, items)


def key(name: str, **said: Any) -> Any:
    """A field of the schema, without a default, with its Key: arguments as of `described`."""
    info = Field()
    info.metadata.append(described(name, **said))  # pydantic joins it with what the type says
    return info


@cache
def of(record: type[BaseModel], name: str) -> Key | None:
    """The Key of a field. What a record has not itself it inherits; its `inherited` says of what it has inherited."""
    for kind in record.__mro__:
        if name in inspect.get_annotations(kind):
            found = [data for data in kind.model_fields[name].metadata if isinstance(data, Key)]
            if found:
                return found[0]
        said = vars(kind).get("inherited", {})
        if name in said or "*" in said:
            return said.get(name, said.get("*"))
    return None


def walk(record: type[BaseModel], values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any, Key | None]]:
    """Finds the Key of every setting; a section without one is gone through key by key.

    Args:
        record: the type of the settings, or of a section of them.
        values: the settings as nested dictionaries.
        above: the key of the section with a full stop behind it; empty for the settings as a whole.

    Yields:
        (key with the names of its sections, value, what is said of it).
    """
    for name, value in values.items():
        found, place = of(record, name), f"{above}{name}"
        if found and found.items is not None:
            yield from ((f"{place}.{each}", item, found.items.get(each, found)) for each, item in value.items())
        elif found or not isinstance(value, dict):
            yield place, value, found
        else:
            yield from _walk_section(record.model_fields[name].annotation, value, f"{place}.")


def _walk_section(kind: Any, values: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any, Key | None]]:
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        yield from walk(kind, values, above)
    else:  # records of one type by name
        for name, value in values.items():
            yield from walk(get_args(kind)[1], value, f"{above}{name}.")
