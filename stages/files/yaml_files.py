"""Reads YAML files, lists values by dotted key, and reads the metadata of a folder of data."""

import re
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import yaml

from stages.files.quoting import quote_value

# ten times as fast as SafeLoader, where PyYAML was built with libyaml
FAST: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# lists and maps within each other: far above all files of this repository
DEEPEST = 100

# Words without quotation marks that are no text, by the core schema of YAML 1.2 (section 10.3.2), as in DVC. By the
# YAML 1.1 of PyYAML, `no` would be false, 010 would be 8, 1:30 would be 90, and 1e-4 would be a text. Beyond the
# schema, numbers may have underscores, and `<<` merges maps, as in YAML 1.1. A number with leading zeros stays a text,
# because the versions of YAML differ about the value.
FORMS = {
    "null": "~|null|Null|NULL|",
    "bool": "true|True|TRUE|false|False|FALSE",
    "int": "[-+]?(0|[1-9][0-9_]*)|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": (
        r"[-+]?(\.[0-9]+|[0-9][0-9_]*\.[0-9_]*)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.(inf|Inf|INF)"
        r"|\.(nan|NaN|NAN)"
    ),
    "merge": "<<",
}


class Loader(FAST):
    """A safe loader of YAML 1.2 that refuses a repeated key, where other parsers keep the last value."""

    yaml_implicit_resolvers: ClassVar[dict] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """Makes a dictionary; raises an error for a repeated key."""
        seen = []
        for key, _ in node.value:
            if key.value in seen:
                problem = f"key given twice, delete one: {quote_value(key.value)}"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.append(key.value)
        return super().construct_mapping(node, deep)


for _type, _form in FORMS.items():
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", re.compile(f"({_form})$"), None)


def is_generated(folder: Path) -> bool:
    """Returns whether README.md in a folder of data has the metadata `generated: true`, between two lines `---`."""
    path = folder / "README.md"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return re.match(r"---\n(?:(?!---\n).*\n)*generated: true\n", text) is not None


def read_yaml(path: Path, form: Any = Any) -> Any:
    """Reads a YAML file as dictionaries, lists and scalars; None for an empty file.

    `form` is a type, as a class of typing.TypedDict: other keys are left out.

    Raises:
        ValueError: the file is not UTF-8 or not YAML, gives a key twice, is too deep, or is not of the form; the
            message names the file and mostly the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
        _require_flat(text)
        content = yaml.load(text, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        # the parser says so of a tab, and of a sign such as @
        assert error.problem and error.problem_mark, "the parser and this module always give both"
        hint = "; indent with spaces, or use quotation marks" if "cannot start" in error.problem else ""
        raise ValueError(f"{path}, line {error.problem_mark.line + 1}: not YAML: {error.problem:.120}{hint}") from None
    except yaml.reader.ReaderError as error:
        # the parser counts bytes
        line = text.encode()[: error.position].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: not YAML: a control character; delete U+{error.character:04X}"
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8") from None
    except (yaml.YAMLError, ValueError, AttributeError, LookupError) as error:
        # a value such as `!!timestamp foo`
        raise ValueError(f"{path}: not YAML: {quote_value(error)}") from None
    try:
        return msgspec.convert(content, form)
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {error}; correct the entry, whose number counts from 0") from None


def _require_flat(text: str) -> None:
    anchors: list[str | None] = []
    for event in yaml.parse(text, Loader=FAST):
        fault = None
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor)
            if len(anchors) > DEEPEST:
                fault = f"more than {DEEPEST} lists and maps within each other"
        elif isinstance(event, yaml.CollectionEndEvent):
            anchors.pop()
        # the value would grow at every level, or hold itself
        elif isinstance(event, yaml.AliasEvent) and any(anchors):
            fault = "an alias within an anchored value; write the value out"
        if fault:
            raise ValueError(f"line {event.start_mark.line + 1}: {fault}")


def list_values(content: object, key: str = "") -> dict[str, object]:
    """Lists all settings by dotted key: {"data": {"root": "a"}} gives {"data.root": "a"}."""
    if not isinstance(content, dict) or (key and not content):
        return {key: content}
    values = {}
    for name, value in content.items():
        values.update(list_values(value, f"{key}.{name}" if key else str(name)))
    return values
