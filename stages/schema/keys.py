"""What the report calls a key of params.yaml, and what the sources state of it; both stand where the key is defined.

A source is named by its letters in stages/scales/laptop.yaml: C is Courtois et al. and CC their released code, K
Kowsher et al., B the blog post on Hadamard attention and T the tutorial that it follows, D the draft section on
attention over parameters and V the paper that it follows (Vaswani et al. 2017).
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, Field

SOURCES = {  # by letters: the source, and the section below its name in data/published/protocol.yaml with the values
    "C": ("courtois2024", "stated"),
    "CC": ("courtois2024", "released_code"),
    "K": ("kowsher", "stated"),
    "B": ("hadamard_blog", "stated"),
    "T": ("hadamard_blog", "followed"),
    "D": ("aop", "stated"),
    "V": ("aop", "followed"),
}
PARTS = {  # parts of params.yaml, and the one source with which the keys of each are compared
    "finetuning.courtois2024": "courtois2024",
    "finetuning.kowsher2025": "kowsher",
    "translation.protocols.blog": "hadamard_blog",
    "translation.protocols.draft": "aop",
}


def equal(value: Any, expected: Any) -> bool:
    """Whether a run's value is the source's; the order of a list does not matter."""
    return sorted(value) == sorted(expected) if isinstance(expected, list) else value == expected


def covers(value: Any, expected: list) -> bool:
    """Whether a run's list has every element of the source's list; it may have more."""
    return set(value) >= set(expected)


def count(value: Any, expected: int) -> bool:
    """Whether a run's list has as many elements as the source states."""
    return len(value) == expected


def contains(value: Any, expected: str) -> bool:
    """Whether a run's value, as text, contains the source's text."""
    return expected in str(value)


@dataclass(frozen=True)
class Stated:
    """What a source has of a key, and how the value of a run is compared with it.

    place: names with full stops between them, below the section of the protocol that SOURCES names; `{name}` stands for
    the last part of the key.
    value: what a run is compared with, where the place has only a wording of it; `...` where it has the value itself.
    compare: takes the value of the run and this value, and returns whether the run is as the source states.
    also: further keys of params.yaml that must be as the same source states for this key to be so.
    name: what the report calls the key where it stands next to this source; empty for the usual name.
    """

    place: str
    value: Any = ...
    compare: Callable[[Any, Any], bool] = equal
    also: tuple[str, ...] = ()
    name: str = ""


OPEN = Stated("")  # the source leaves the key open, although it needs one


class Key:
    """What the schema says of a key of params.yaml, for the report.

    Args:
        name: what the report calls the key; `{name}` in it stands for the last part of the key in words, `{part}` for
            the name of the section that holds the key.
        absent: what the report shows for null, with other settings as `{KEY}`; empty where null means "all".
        only: other keys, and the value that each must have for this key to have an effect.
        rule: for a rule of the filter, the metadata of documents that it reads, by name; empty for every other key.
        items: for a section whose names are free (`models`), the Keys of the names of which a source has something;
            every other name has this Key itself. None for a key that is no such section.
        stated: what each source has of the key, by the letters of SOURCES; a text means Stated(text).
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
    """Returns a pydantic field without a default that carries a Key, made of these arguments."""
    info = Field()
    info.metadata.append(Key(name, **options))  # pydantic joins it with the metadata of the field's type
    return info


@cache
def of(record: type[BaseModel], name: str) -> Key | None:
    """Finds the Key of a field of a record; None where the schema has none.

    The record is searched first, then its bases in order. In each class, the Key with which the class defines the field
    comes first, then that in the class's `inherited` under the field's name, then the one there under `*`.
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
        The key of params.yaml with the names of its sections (`pretraining.steps`), its value, and its Key or None.
    """
    is_record = inspect.isclass(kind) and issubclass(kind, BaseModel)
    for name, value in values.items():
        place, said = f"{above}{name}", of(kind, name) if is_record else None
        if said and said.items is not None:
            for item, content in value.items():
                yield f"{place}.{item}", content, said.items.get(item, said)
        elif said or not isinstance(value, dict):
            yield place, value, said
        else:  # the type of the section is that of the field or, in dict[NAME, RECORD], the second
            yield from walk(kind.model_fields[name].annotation if is_record else get_args(kind)[1], value, f"{place}.")
