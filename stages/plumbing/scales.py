"""Scales: a whole params.yaml of each, made of laptop.yaml and of what another file of stages/scales has otherwise.

The lines of a scale's own file take the place of laptop's: its head, every key that it names with the comment of that
key, and the comment of a section where it gives one. What is written has laptop's order and its other comments.
"""

from collections.abc import Iterator
from pathlib import Path

import yaml

from stages.plumbing.documents import read_yaml
from stages.plumbing.files import write_atomically

FOLDER = Path(__file__).parents[1] / "scales"
COMPLETE = "laptop"
TAKEN_WHOLE = {"variants"}  # sections that a scale's own replaces whole; of others it replaces the keys that it names
ABSENT = "not there"


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read(scale: str) -> str:
    """The whole params.yaml of a scale, with comments."""
    lines, own = ((FOLDER / f"{name}.yaml").read_text(encoding="utf-8").splitlines() for name in (COMPLETE, scale))
    if scale != COMPLETE:
        base, changes = (yaml.compose("\n".join(file), Loader=yaml.SafeLoader) for file in (lines, own))
        head = (0, base.start_mark.line, own[: changes.start_mark.line])
        for start, end, new in sorted([head, *_changes(base, changes, lines, own)], reverse=True):
            lines[start:end] = new
    return "\n".join(lines) + "\n"


def _changes(
    base: yaml.MappingNode, own: yaml.MappingNode, lines: list[str], new: list[str]
) -> Iterator[tuple[int, int, list[str]]]:
    """(first line, line after the last, what stands there in their place) of every change of `lines` to a scale's own.

    Args:
        base, own: a section in laptop's file and in the scale's.
        lines, new: the lines of these files.
    """
    known = {key.value: (key.start_mark.line, value) for key, value in base.value}
    last = _end(base, lines)
    for key, value in own.value:
        at = key.start_mark.line
        start, old = known.get(key.value, (last, None))
        if old is None:  # in a section whose names are free, such as `models`
            yield last, last, new[at : _end(value, new)]
        elif key.value in TAKEN_WHOLE or not (_is_section(old) and _is_section(value)):
            yield start, _end(old, lines), new[at : _end(value, new)]
        else:
            if "#" in new[at]:
                yield start, start + 1, [new[at]]
            yield from _changes(old, value, lines, new)


def _is_section(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and not node.flow_style


def _end(node: yaml.Node, lines: list[str]) -> int:
    """The line after the last of a value; blank lines and comments below it belong to what follows."""
    if node.end_mark.column:
        return node.end_mark.line + 1
    end = node.end_mark.line  # of what has no sign at its end, the parser gives the begin of what follows
    while not lines[end - 1].partition("#")[0].strip():
        end -= 1
    return end


def write(scale: str, path: Path) -> str:
    """Writes a scale as params.yaml; says what it replaced.

    Args:
        scale: one of `names()`.
        path: of params.yaml. A file there is replaced.

    Returns:
        The name of the scale that stood there, and every key in which the file was otherwise than that scale.

    Raises:
        ValueError: the file that stands there is no YAML; it stays.
    """
    said = f"{path}: scale `{scale}`"
    if path.exists():
        content = read_yaml(path)
        before = dict(_values(content))
        past = before.get("scale")
        known = past if past in names() else COMPLETE
        there = dict(_values(yaml.safe_load(read(known))))
        edits = [
            f"  {key}: {before.get(key, ABSENT)} ({known}: {there.get(key, ABSENT)})"
            for key in dict.fromkeys((*there, *before))
            if before.get(key, ABSENT) != there.get(key, ABSENT)
        ]
        otherwise = "with nothing edited" if not edits else "with these keys otherwise than that scale:"
        said = "\n".join([f"{said}, in place of `{past}` {otherwise}", *edits])
    write_atomically(path, read(scale))
    return said


def _values(content: object, key: str = "") -> Iterator[tuple[str, object]]:
    """(key, value) of every setting, sections left out."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _values(value, f"{key}.{name}" if key else str(name))
    else:
        yield key, content
