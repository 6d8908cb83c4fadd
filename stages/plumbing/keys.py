"""What the report calls a key of params.yaml, and what the papers state of it; both stand where the key is defined.

A source is named by the letters of stages/scales/laptop.yaml: C is Courtois et al. and CC their released code, K
Kowsher et al., B the blog post and T the tutorial that it follows, D the draft section and V the paper that it follows.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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


class Key:
    """What the schema says of a key.

    Args:
        name: in the report; `{name}` is the key's last part in words, `{part}` the section's name.
        absent: what null means, where it is not all there is; with settings as `{key}`.
        only: keys, and the values without which this one has no effect.
        rule: of the filter, which reads the documents' metadata of that name.
        items: of a section whose names are free, those of which a source has something; every other name goes by this
            key itself.
        stated: what each source has of it, by the letters of SOURCES; a text is a Stated of that place.
    """

    def __init__(
        self,
        name: str,
        *,
        absent: str = "",
        only: Mapping[str, Any] | None = None,
        rule: str = "",
        items: "Mapping[str, Key] | None" = None,
        **stated: Stated | str,
    ):
        self.name, self.absent, self.only, self.rule, self.items = name, absent, only or {}, rule, items
        self.stated = {letter: Stated(it) if isinstance(it, str) else it for letter, it in stated.items()}


def key(name: str, **options: Any) -> Any:
    """A field of the schema, without a default, with its Key, whose arguments these are."""
    info = Field()
    info.metadata.append(Key(name, **options))  # pydantic joins it with the metadata of the field's type
    return info


@cache
def of(record: type[BaseModel], name: str) -> Key | None:
    """The Key of a field of a record; None where the schema has none.

    A field that the record inherits has the Key that `inherited` of the record has under the field's name or, where it
    has none, under `*`; otherwise the Key of the record that defines the field.
    """
    for kind in record.__mro__:
        metadata = kind.model_fields[name].metadata if name in inspect.get_annotations(kind) else []
        if keys := [data for data in metadata if isinstance(data, Key)]:
            return keys[0]
        inherited = vars(kind).get("inherited", {})
        if name in inherited or "*" in inherited:
            return inherited.get(name, inherited.get("*"))
    return None


def walk(kind: Any, values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any, Key | None]]:
    """Finds the Key of every setting; a section without a Key of its own is divided into its keys.

    Args:
        kind: the type of the settings, or of a section of them: a record, or records of one type by name.
        values: the settings as nested dictionaries.
        above: the key of the section with a full stop behind it; empty for the settings as a whole.

    Yields:
        Key with the names of its sections, value, and its Key.
    """
    is_record = inspect.isclass(kind) and issubclass(kind, BaseModel)
    for name, value in values.items():
        place, said = f"{above}{name}", of(kind, name) if is_record else None
        if said and said.items is not None:
            for item, content in value.items():
                yield f"{place}.{item}", content, said.items.get(item, said)
        elif said or not isinstance(value, dict):
            yield place, value, said
        else:
            yield from walk(kind.model_fields[name].annotation if is_record else get_args(kind)[1], value, f"{place}.")
