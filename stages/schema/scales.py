"""Scales: the whole params.yaml of each is laptop.yaml with the changes that its own file in stages/scales makes.

The lines of a scale's file replace those of laptop.yaml: its head, every key that it names with the comment of the key,
and the comment of a section where it gives one. The order and all other comments are those of laptop.yaml.
"""

from collections.abc import Iterator
from pathlib import Path

import yaml

from stages.files.documents import read_yaml
from stages.files.storage import write_atomically

FOLDER = Path(__file__).parents[1] / "scales"
COMPLETE = "laptop"
TAKEN_WHOLE = {"variants"}  # sections that a scale replaces whole; of others it replaces the keys that it names
ABSENT = "not there"  # shown in place of the value of a key that a file lacks


def names() -> list[str]:
    """Returns the names of all scales, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read(scale: str) -> str:
    """Returns the text of the whole params.yaml of a scale, one of `names()`, with its comments."""
    lines, changed = ((FOLDER / f"{name}.yaml").read_text(encoding="utf-8").splitlines() for name in (COMPLETE, scale))
    if scale != COMPLETE:
        base, changes = (yaml.compose("\n".join(file), Loader=yaml.SafeLoader) for file in (lines, changed))
        head = (0, base.start_mark.line, changed[: changes.start_mark.line])
        # from the last line to the first, so that the numbers of the lines above stay right; keys that are new at one
        # place come in the order of their text, so that those of an inner section, indented further, stay inside it
        for start, end, replacement in sorted([head, *_changes(base, changes, lines, changed)], reverse=True):
            lines[start:end] = replacement
    return "\n".join(lines) + "\n"


def _changes(
    base: yaml.MappingNode, changes: yaml.MappingNode, lines: list[str], changed: list[str]
) -> Iterator[tuple[int, int, list[str]]]:
    """Finds every change that turns a section of laptop.yaml into that of another scale.

    `base` and `changes` are the section in laptop.yaml and in the scale's file, whose lines are `lines` and `changed`.
    Yields the number of the first line of `lines` that is replaced, from 0, the number of the line after the last, and
    the lines that take their place.
    """
    sections = {key.value: (key.start_mark.line, value) for key, value in base.value}
    last = _end(base, lines)
    for key, value in changes.value:
        at = key.start_mark.line
        start, old = sections.get(key.value, (last, None))
        if old is None:  # in a section whose names are free, such as `models`
            yield last, last, changed[at : _end(value, changed)]
        elif key.value in TAKEN_WHOLE or not (_is_section(old) and _is_section(value)):
            yield start, _end(old, lines), changed[at : _end(value, changed)]
        else:
            if "#" in changed[at]:  # the section's own comment
                yield start, start + 1, [changed[at]]
            yield from _changes(old, value, lines, changed)


def _is_section(node: yaml.Node) -> bool:
    """Whether a node is a map with a key per line; a map in braces is replaced as one value."""
    return isinstance(node, yaml.MappingNode) and not node.flow_style


def _end(node: yaml.Node, lines: list[str]) -> int:
    """The number of the line after a value, from 0; blank lines and comments below the value belong to what follows."""
    end = node.end_mark.line
    if lines[end:] and lines[end][: node.end_mark.column].strip():
        return end + 1
    # for a value without a closing sign, the parser gives the begin of what follows
    while not lines[end - 1].partition("#")[0].strip():
        end -= 1
    return end


def write(scale: str, path: Path) -> str:
    """Writes a scale, one of `names()`, as params.yaml to `path`, and returns a text on what it replaced there.

    The text names the scale and, where a file was replaced, the file's scale and every key in which the file differed
    from that scale, or from laptop where its scale is unknown. ValueError where that file is no YAML; it then stays.
    """
    report = f"{path}: scale `{scale}`"
    if path.exists():
        before = dict(values(read_yaml(path) or {}))
        name = before.get("scale")
        compared = name if name in names() else COMPLETE
        unedited = dict(values(yaml.safe_load(read(compared))))
        edits = [
            f"  {key}: {before.get(key, ABSENT)} ({compared}: {unedited.get(key, ABSENT)})"
            for key in dict.fromkeys((*unedited, *before))
            if before.get(key, ABSENT) != unedited.get(key, ABSENT)
        ]
        otherwise = "with nothing edited" if not edits else "with these keys otherwise than that scale:"
        report = "\n".join([f"{report}, in place of `{name}` {otherwise}", *edits])
    write_atomically(path, read(scale))
    return report


def values(content: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yields (key with names of its sections, value) of every setting; a list is one value, an empty section none."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from values(value, f"{key}.{name}" if key else str(name))
    else:
        yield key, content
