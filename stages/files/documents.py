"""Reads users' YAML files, and refuses what a YAML parser would let pass in silence, such as a key given twice."""

from pathlib import Path

import yaml

LARGEST = 100_000  # values, keys among them, once every alias stands for what it names; params.yaml has some 800


def read_yaml(path: Path) -> object:
    """Returns the content of a YAML file as dictionaries, lists and scalars; None for an empty file.

    Raises:
        ValueError: the file is not UTF-8 or not YAML, gives a key twice (in one spelling), holds a scalar that is no
            value of its type or an alias to something around it, is nested too deeply, or stands for more than LARGEST
            values. The message holds the file and the line; for what is not UTF-8, the byte; for nesting, neither.
        FileNotFoundError: there is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            _size(root, path, {}, yaml.SafeLoader(""))
        return yaml.safe_load(text)
    except yaml.reader.ReaderError as error:
        line, character = 1 + text.count("\n", 0, error.position), f"U+{error.character:04X}"
        raise ValueError(f"{path}, line {line}: not YAML: holds the character {character}; delete it") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
    except RecursionError:
        raise ValueError(f"{path}: nested too deeply") from None


def _size(node: yaml.Node, path: Path, sizes: dict[int, int | None], loader: yaml.SafeLoader) -> int:
    """Counts the values that a node stands for with its aliases expanded: itself and all keys and values below it.

    Raises the errors of `read_yaml` that a parser would not. sizes: counts by id of node, so that a node with many
    aliases is counted once; None while its count is at work, when only an alias inside it can lead back to it.
    loader: constructs every scalar, to see whether that is possible.
    """
    where = f"{path}, line {node.start_mark.line + 1}"
    if id(node) in sizes:
        if (size := sizes[id(node)]) is None:
            raise ValueError(f"{where}: refers to itself")
        return size
    sizes[id(node)] = None
    parts = []
    if isinstance(node, yaml.MappingNode):
        keys = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in keys:
                raise ValueError(f"{path}, line {key.start_mark.line + 1}: `{key.value}` stands here twice; delete one")
            keys.add(key.value if isinstance(key, yaml.ScalarNode) else id(key))
            parts += [key, value]
    elif isinstance(node, yaml.SequenceNode):
        parts = node.value
    else:
        try:
            loader.construct_object(node)
        except (ValueError, AttributeError, OverflowError, yaml.YAMLError) as error:  # as the library happens to fail
            kind = node.tag.rpartition(":")[2]
            raise ValueError(f"{where}: {node.value[:40]!r} cannot be read as {kind} ({error}); mend it") from None
    size = 1 + sum(_size(part, path, sizes, loader) for part in parts)
    if size > LARGEST:
        raise ValueError(f"{where}: its aliases stand for more than {LARGEST} values; write out what is meant")
    sizes[id(node)] = size
    return size
