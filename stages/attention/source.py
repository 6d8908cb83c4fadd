"""The digest of a Python file's code. This file imports no torch, so that the pipeline can load the file alone."""

import ast
import hashlib
from contextlib import suppress
from pathlib import Path

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def compute_source_digest(path: Path) -> str:
    """Computes the hexadecimal SHA-256 of a file's code: comments, docstrings and layout of Python do not count.

    All bytes count if the file does not parse, or is not Python (by the name).
    """
    content = path.read_bytes()
    if path.suffix == ".py":
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            content = ascii(_describe_node(ast.parse(content))).encode()
    return hashlib.sha256(content).hexdigest()


def _describe_node(node: object) -> object:
    """Describes a part of a syntax tree, without docstrings, as nested lists of text."""
    if isinstance(node, list):
        return [_describe_node(part) for part in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        del node.body[0]
    fields = []
    for name, value in ast.iter_fields(node):
        # Versions of Python differ in the fields that are empty, so `ast.dump` would differ, too.
        if value is not None and value != []:
            fields.append([name, _describe_node(value)])
    return [type(node).__name__, fields]
