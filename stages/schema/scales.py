"""Scales: the params.yaml of a scale is laptop.yaml with the changes in the scale's own file in stages/scales.

Head, values and comments behind values in the scale's file replace head, values and comments of laptop.yaml. The order
of keys and all other comments come from laptop.yaml.
"""

import re
from io import StringIO
from pathlib import Path
from stat import S_IMODE
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from stages.files.quoting import quote_bare
from stages.files.storage import write_atomically
from stages.files.yaml_files import Loader, list_values, read_yaml

FOLDER = Path(__file__).parents[1] / "scales"
COMPLETE = "laptop"
# The comments and blank lines at the top of a file
HEAD = re.compile(r"\A(#.*\n|[ \t]*\n)*")
# Shown in place of the value of a key that a file lacks
ABSENT = "not there"


def list_scales() -> list[str]:
    """Lists the names of all scales, sorted."""
    return sorted(path.stem for path in FOLDER.glob("[!.]*.yaml"))


def read(scale: str) -> str:
    """Builds the text of the complete params.yaml of a scale, such as `laptop`, with comments."""
    laptop = (FOLDER / f"{COMPLETE}.yaml").read_text(encoding="utf-8")
    if scale == COMPLETE:
        return laptop
    own = (FOLDER / f"{scale}.yaml").read_text(encoding="utf-8")
    # Without blank lines, which ruamel would copy with the comments; laptop.yaml has the blank lines between sections.
    lines = [line for line in own.splitlines() if line.strip()]
    parser = _make_yaml_parser()
    whole = parser.load(laptop)
    _merge_sections(whole, parser.load("\n".join(lines)))
    text = StringIO()
    parser.dump(whole, text)
    body = HEAD.sub("", own)
    head = own.removesuffix(body)
    return head + HEAD.sub("", text.getvalue())


def _make_yaml_parser() -> YAML:
    parser = YAML()
    parser.preserve_quotes = True
    # lists in brackets stay on one line
    parser.width = 10_000
    parser.indent(mapping=2, sequence=4, offset=2)
    # ruamel would leave out null
    parser.representer.add_representer(
        type(None), lambda representer, _: representer.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    return parser


def _merge_sections(whole: CommentedMap, changes: CommentedMap) -> None:
    """Puts the values and comments of the map `changes` into the map `whole`, section by section."""
    for key, value in changes.items():
        present = whole.get(key)
        # a scale replaces the section `variants` whole; of other sections, a scale replaces single keys
        if key != "variants" and _is_section(present) and _is_section(value):
            _merge_sections(present, value)
            # the comment behind the name of the section, which ruamel keeps twice
            if value.ca.comment:
                _replace_comment(whole, changes, key)
                present.ca.comment = value.ca.comment
        else:
            whole[key] = value
            _replace_comment(whole, changes, key)


def _is_section(value: object) -> bool:
    # A map in braces, or an empty map, is a single value.
    return isinstance(value, CommentedMap) and len(value) > 0 and not value.fa.flow_style()


def _replace_comment(whole: CommentedMap, changes: CommentedMap, key: str) -> None:
    """Replaces the comment on the line of `key` by the comment in `changes`, or by none."""
    # ruamel keeps four comments per key. The second is above the key. The third has the rest of the line, and the lines
    # of comment below, which are kept.
    _, above, behind, _ = whole.ca.items.get(key, [None] * 4)
    comment = changes.ca.items.get(key, [None] * 4)[2]
    below = behind.value.partition("\n")[2] if behind else ""
    if comment:
        comment.value += below
    elif below:
        behind.value = f"\n{below}"
        comment = behind
    whole.ca.items[key] = [None, above, comment, None]


def write(scale: str, path: Path) -> str:
    """Writes the params.yaml of a scale to `path`, and reports the edits in the file that was replaced.

    Returns:
        A text for the user with the new scale and, if a file was replaced, the old scale and every value that differed
        from that scale (or from laptop, if the scale is unknown).

    Raises:
        ValueError: the file to be replaced is no YAML; the file stays.
    """
    report = f"{path}: scale `{scale}`"
    # a link stays a link, and a file that others cannot read stays so
    target = path.resolve()
    mode = None
    if target.exists():
        report += _report_edits(read_yaml(path) or {})
        mode = target.stat().st_mode
    write_atomically(target, read(scale))
    if mode:
        target.chmod(S_IMODE(mode))
    return report


def _report_edits(params: Any) -> str:
    """Describes the values of a replaced params.yaml that differ from its scale."""
    values = list_values(params)
    name = values.get("scale")
    scale = name if name in list_scales() else COMPLETE
    edits = list_edits(values, scale)
    if not edits:
        return f", in place of `{quote_bare(name)}` with nothing edited"
    return "\n".join([f", in place of `{quote_bare(name)}` with these values that differ from that scale:", *edits])


def list_edits(values: dict[str, object], scale: str) -> list[str]:
    """Describes values that differ from a scale, a line per key, such as "  workers: 4 (laptop: None)"."""
    unedited = list_values(yaml.load(read(scale), Loader=Loader))
    # a section that was emptied, such as translation.protocols, is one edit, however many keys it had
    emptied = tuple(f"{key}." for key, value in values.items() if value == {})
    edits = []
    for key in unedited | values:
        if key.startswith(emptied):
            continue
        edited = values.get(key, ABSENT)
        original = unedited.get(key, ABSENT)
        # for an emptied section, the scale has keys such as translation.protocols.blog
        if edited == {} and any(name.startswith(f"{key}.") for name in unedited):
            original = "not empty"
        if edited != original:
            edits.append(f"  {quote_bare(key)}: {quote_bare(edited)} ({scale}: {original})")
    return edits


def require_named(path: Path) -> None:
    """Raises ValueError if fewer values of a params.yaml differ from another scale than from the named scale."""
    values = list_values(read_yaml(path))
    name = values["scale"]
    if name not in list_scales() or not list_edits(values, name):
        return
    # the key `scale` itself does not count
    edits = {scale: len(list_edits(values | {"scale": scale}, scale)) for scale in list_scales()}
    nearest = min(edits, key=edits.get)
    # probably, only the key `scale` was edited
    if edits[nearest] < edits[name]:
        raise ValueError(
            f"{path}: scale: given {name!r}, but {edits[name]} values differ from that scale and {edits[nearest]} from "
            f"`{nearest}`; `python -m stages scale {name}` writes the values of `{name}`; to keep the values, choose a "
            "new name"
        )
