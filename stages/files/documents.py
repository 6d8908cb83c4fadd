"""Reads users' YAML files."""

from pathlib import Path

import yaml

from stages.files.quoting import quote

# ten times as fast as SafeLoader, where PyYAML was built with libyaml
FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(FAST):
    """A safe loader that refuses a key given twice, which YAML parsers let pass in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = []
        for key, _ in list(node.value):
            if key.value in seen:
                problem = f"given twice, delete one: {quote(key.value)}"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.append(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> object:
    """Returns the content of a YAML file as dictionaries, lists and scalars; None for an empty file.

    Raises:
        ValueError: the file is not UTF-8 or not YAML, or gives a key twice; the message names the file and, if the
            parser knows the line, the line.
        FileNotFoundError: there is no such file.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise ValueError(f"{path}, line {error.problem_mark.line + 1}: not YAML: {error.problem:.120}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8") from None
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError) as error:
        # a value such as `!!timestamp foo`, or nesting without end
        raise ValueError(f"{path}: not YAML: {quote(error)}") from None
