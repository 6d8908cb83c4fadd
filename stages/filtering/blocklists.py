"""Categories of web addresses by the UT1 blocklists (University of Toulouse; layout of olbat/ut1-blacklists).

A category is a folder with `domains` and `urls`, plain or compressed (.gz, .zst). An address has the categories of
its host, of every parent domain, and of itself without its query, as in OSCAR 23.01 (oscar-project/ut1-rs). Entries
are kept as sorted 64-bit hashes, 9 bytes each, memory-mapped: one copy for all processes of a machine.
"""

import hashlib
import ipaddress
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from stages.plumbing.files import write_atomically
from stages.records import reading

CATEGORIES = 256  # at most: an entry keeps the number of its category in one byte
LISTS = ("domains", "urls")
HASHES, NUMBERS, NAMES = "hashes.npy", "numbers.npy", "names.json"
SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
PORT = re.compile(r":\d*$")
LONGEST_NAME = 253  # characters of a host's name, at most (RFC 1035, section 2.3.4, less the two that are not written)


def folders(root: Path) -> dict[str, list[Path]]:
    """The files of the lists by category. Links are left out: they are second names of a category.

    Raises:
        ValueError: there is no category, or there are more than CATEGORIES.
    """
    categories = {}
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        files = [folder / f"{name}{suffix}" for name in LISTS for suffix in ("", *reading.DECOMPRESSION)]
        files = [file for file in files if file.is_file()]
        if files and not folder.is_symlink():
            categories[folder.name] = files
    if not categories:
        raise ValueError(
            f"filtering.annotation.blocklists: {root} has no folder with a file `domains` or `urls`; unpack the UT1 "
            "lists there (one folder a category), or say null"
        )
    if len(categories) > CATEGORIES:
        raise ValueError(
            f"filtering.annotation.blocklists: {root} has {len(categories)} categories, more than {CATEGORIES}; leave "
            "there those that filtering.excluded_categories names"
        )
    return categories


def compile_lists(settings: dict, folder: Path) -> dict:
    """Job: makes what `Blocklist` reads.

    Args:
        settings: root, the folder of the lists.
        folder: gets the hashes of all entries.

    Returns:
        The number of entries by category.

    Raises:
        ValueError: a line is no text in UTF-8, or a category has no entry, so that it would exclude nothing.
    """
    categories = folders(Path(settings["root"]))
    parts = []
    for files in categories.values():
        hashes = (_hash(entry) for file in files for entry in _entries(file))
        parts.append(np.unique(np.fromiter(hashes, dtype=np.uint64)))
        if not len(parts[-1]):
            raise ValueError(f"{files[0]}: no entry; fetch the list again, or take its category out of the folder")
    hashes = np.concatenate(parts)
    numbers = np.repeat(np.arange(len(parts), dtype=np.uint8), [len(part) for part in parts])
    order = np.argsort(hashes, kind="stable")
    np.save(folder / HASHES, hashes[order])
    np.save(folder / NUMBERS, numbers[order])
    write_atomically(folder / NAMES, json.dumps(list(categories)))
    return {category: len(part) for category, part in zip(categories, parts, strict=True)}


class Blocklist:
    """What `compile_lists` left in a folder."""

    def __init__(self, folder: Path):
        self._hashes = np.load(folder / HASHES, mmap_mode="r")
        self._numbers = np.load(folder / NUMBERS, mmap_mode="r")
        self._names = json.loads((folder / NAMES).read_text())

    def categories(self, address: str) -> tuple[str, ...]:
        """All categories of an address, in the order of their names."""
        keys = np.fromiter((_hash(form) for form in forms(address)), dtype=np.uint64)
        first, last = (np.searchsorted(self._hashes, keys, side=side) for side in ("left", "right"))
        numbers = {int(self._numbers[i]) for start, stop in zip(first, last, strict=True) for i in range(start, stop)}
        return tuple(self._names[number] for number in sorted(numbers))


def forms(address: str) -> Iterator[str]:
    """What of an address may stand in a list: host, parent domains short of the last label, address."""
    host, path = normalised(address)
    yield host
    if not _is_ip(host):
        labels = host[-LONGEST_NAME - 1 :].split(".")  # a host of many labels would take time by their square
        yield from (".".join(labels[start:]) for start in range(1, len(labels) - 1))
    if path:
        yield host + path
        yield host.removeprefix("www.") + path


def normalised(address: str) -> tuple[str, str]:
    """Host (lower case, ASCII form, no port, no trailing dot) and path (no query, no trailing slash)."""
    address = SCHEME.sub("", address.strip(), count=1).removeprefix("//")
    address = re.split(r"[?#]", address, maxsplit=1)[0]
    authority, slash, path = address.partition("/")
    host = PORT.sub("", authority.rpartition("@")[2]).strip("[]").rstrip(".").lower()
    return _ascii(host), (slash + path).rstrip("/")


def _ascii(host: str) -> str:
    """International names as their ASCII form (IDNA 2003, as browsers of the lists' makers); others as they are."""
    try:
        return host if host.isascii() else unquote(host).encode("idna").decode()
    except UnicodeError:
        return host


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _entries(path: Path) -> Iterator[str]:
    """Normalised entries of a list; blank lines and comments left out."""
    for number, line in enumerate(reading.lines(path), start=1):
        try:
            written = line.decode().strip()
        except UnicodeDecodeError:
            written = "\0"
        if "\0" in written:  # also of UTF-16, which decodes without an error where its letters are ASCII
            raise ValueError(f"{path}, line {number}: no text in UTF-8; convert the list (`iconv -t utf-8`)")
        if not written.startswith("#") and (entry := "".join(normalised(written))):
            yield entry


def _hash(entry: str) -> int:
    digest = hashlib.blake2b(entry.encode(errors="replace"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
