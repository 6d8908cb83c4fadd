"""Categories of web addresses by the UT1 blocklists (University of Toulouse; layout of olbat/ut1-blacklists).

A category is a folder with `domains` and `urls`, plain or compressed (.gz, .zst). An address has the categories of the
host, of every parent domain, and of the address without query, as in OSCAR 23.01 (oscar-project/ut1-rs): the entry
`bad.org/?q` stands for the front page `bad.org/`, the entry `bad.org` for the whole site. A line may also begin with
`*.` or `.`, be a line of a hosts file (`0.0.0.0 bad.org`), or stand in quotation marks. Other lines, such as rules of
ad blockers (`||bad.org^`), are counted and ignored.

An entry is a 64-bit hash and the number of a category, in sorted, memory-mapped arrays that all processes share. With a
million entries, an unlisted address collides with an entry with a probability of 5e-14.
"""

import hashlib
import ipaddress
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, product
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from stages.files.quoting import quote_value
from stages.files.stand_ins import require_target
from stages.files.storage import write_atomically
from stages.records import reading

LISTS = ("domains", "urls")
HASHES, NUMBERS, NAMES = "hashes.npy", "numbers.npy", "names.json"
# largest number of categories, because an entry keeps the number of the category in one byte
MAX_CATEGORIES = 256
SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
# an IPv6 address without brackets has no port
PORT = re.compile(r"^(\[.*]|[^:]*):\d*$")
# what may precede an entry: the address to which a hosts file sends the names that it blocks, and a wildcard
PREFIX = re.compile(r"^((0\.0\.0\.0|127\.0\.0\.1|::1?)\s+)?(\*?\.)?")
# a name of two labels or more, or an IPv4 address, perhaps with a path; real names have hyphens anywhere
ENTRY = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+(/\S*)?")
# a cell in quotation marks; a mark at the end only belongs to the address, as in some of UT1
CELL = re.compile(r"""^(["'])(.*)\1$""")


def find_lists(root: Path) -> dict[str, list[Path]]:
    """Finds the categories below a folder of blocklists: the paths of the lists by category, sorted by name.

    ValueError if there is no category, there are more than 256, or a list is a broken link.
    """
    categories = {}
    for folder in sorted(root.glob("[!.]*/")):
        files = []
        # domains, domains.zst, domains.gz, urls, ...
        for name, suffix in product(LISTS, ("", *reading.DECOMPRESSION)):
            file = folder / f"{name}{suffix}"
            require_target(file)
            if file.is_file():
                files.append(file)
        # a linked folder is a second name of a category
        if files and not folder.is_symlink():
            categories[folder.name] = files
    if not categories:
        raise ValueError(
            f"filtering.annotation.blocklists: {root} has no folder with a file `domains` or `urls`; unpack the UT1 "
            "lists there (one folder per category), or set the key to null"
        )
    if len(categories) > MAX_CATEGORIES:
        raise ValueError(
            f"filtering.annotation.blocklists: {root} has {len(categories)} categories, more than {MAX_CATEGORIES}; "
            "keep only the categories of filtering.excluded_categories"
        )
    return categories


def compile_lists(argument: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): compiles the blocklists in `root` into sorted arrays of hashes, which `Blocklist` searches.

    Leaves hashes.npy (uint64 [entries], sorted), numbers.npy (uint8 [entries], the categories) and names.json (the
    categories' names).

    Returns:
        - `entries`: the number of different entries by category
        - `no_entries`: the number of lines that are no entries, without blank lines and comments
        - `first_no_entries`: the first five of these lines, each with file and number

    Raises:
        ValueError: a line is not UTF-8, or a category's first list has no entry.
    """
    categories = find_lists(Path(argument["root"]))
    counts = {}
    hashes = []
    rejected = {"no_entries": 0, "first_no_entries": []}
    for category, files in categories.items():
        # the first list, mostly `domains`, must have an entry; `_read_entries` adds to `rejected`
        entries = chain.from_iterable(_read_entries(file, rejected, required=file == files[0]) for file in files)
        category_hashes = np.unique(np.fromiter(map(_hash_entry, entries), dtype=np.uint64))
        counts[category] = len(category_hashes)
        hashes.append(category_hashes)
    # the category of each hash: 2 entries of the first and 3 of the second category give 0 0 1 1 1
    numbers = np.repeat(np.arange(len(categories), dtype=np.uint8), list(counts.values()))
    all_hashes = np.concatenate(hashes)
    order = np.argsort(all_hashes, kind="stable")
    np.save(folder / HASHES, all_hashes[order])
    np.save(folder / NUMBERS, numbers[order])
    write_atomically(folder / NAMES, json.dumps(list(categories)))
    return {"entries": counts, **rejected}


class Blocklist:
    """The blocklists compiled in a folder (`compile_lists`), memory-mapped."""

    def __init__(self, folder: Path):
        self._hashes = np.load(folder / HASHES, mmap_mode="r")
        self._numbers = np.load(folder / NUMBERS, mmap_mode="r")
        self._names = json.loads((folder / NAMES).read_text())

    def find_categories(self, address: str) -> tuple[str, ...]:
        """Returns the names of all categories of an address, sorted."""
        keys = np.fromiter(map(_hash_entry, list_forms(address)), dtype=np.uint64)
        # an entry of several categories is listed once for each, from start to stop - 1
        starts = np.searchsorted(self._hashes, keys, side="left")
        stops = np.searchsorted(self._hashes, keys, side="right")
        numbers = set()
        for start, stop in zip(starts, stops, strict=True):
            numbers.update(self._numbers[start:stop].tolist())
        return tuple(self._names[number] for number in sorted(numbers))


def list_forms(address: str) -> Iterator[str]:
    """Yields the forms under which a list may have an address: host, parent domains, and host with path.

    "http://www.a.org/b" gives "www.a.org", "a.org", "www.a.org/b" and "a.org/b". Parent domains have at least two
    labels. Host with path, which is `/` for the front page, may come twice.
    """
    host, path = normalise_address(address)
    yield host
    # an IP address has no parent domains
    if not _is_ip(host):
        # A name has at most 253 characters (RFC 1035, section 2.3.4), so no list has a longer parent domain. Only the
        # last 253 characters and the dot before them are used: all labels of a very long host would take too long.
        labels = host[-254:].split(".")
        for start in range(1, len(labels) - 1):
            yield ".".join(labels[start:])
    page = host + (path or "/")
    yield page
    yield page.removeprefix("www.")


def normalise_address(address: str) -> tuple[str, str]:
    """Splits an address into host and path: "http://me@A.org.:80/B/?c" gives "a.org" and "/B".

    The host is in lower case and ASCII, without user, port, trailing dot or brackets of IPv6; the path is empty or has
    a leading slash.
    """
    address = SCHEME.sub("", address.strip(), count=1).removeprefix("//")
    address = re.split(r"[?#]", address, maxsplit=1)[0]
    authority, slash, path = address.partition("/")
    _, _, host = authority.rpartition("@")
    host = PORT.sub(r"\1", unquote(host))
    host = host.strip("[]").rstrip(".").lower()
    if not host.isascii():
        # IDNA 2003; a name without an ASCII form stays unchanged
        with suppress(UnicodeError):
            host = host.encode("idna").decode()
    return host, (slash + path).rstrip("/")


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _read_entries(path: Path, rejected: dict, required: bool) -> Iterator[str]:
    """Yields the normalised entries of a list, and counts other lines in `rejected`, as `compile_lists` returns."""
    is_empty = True
    for number, line in enumerate(reading.read_texts(path), start=1):
        written = line.strip()
        # a comment begins a line or follows a space; any other `#` begins the fragment of an address
        uncommented = re.split(r"(?:^|\s)#", written)[0]
        # without quotation marks
        bare = CELL.sub(r"\2", uncommented.strip())
        if not bare:
            continue
        entry = _normalise_entry(bare)
        if entry:
            is_empty = False
            yield entry
            continue
        rejected["no_entries"] += 1
        # the record of the run quotes the first five
        if rejected["no_entries"] <= 5:
            rejected["first_no_entries"].append(f"{path}, line {number}: {quote_value(written)}")
    # not required of `urls` beside `domains`, because some categories of UT1 have empty `urls`
    if required and is_empty:
        raise ValueError(f"{path}: no entry, such as bad.org or bad.org/page; fetch the list again, or delete the file")


def _normalise_entry(line: str) -> str:
    """Normalises a line: "0.0.0.0 *.A.org" gives "a.org", "a.org/b?c" gives "a.org/b"; no entry gives ""."""
    # "a.org/*" is the site "a.org"; "a.org/b/*" is no entry, because only whole paths are looked up
    host, path = normalise_address(PREFIX.sub("", line.removesuffix("/*")))
    if path and line.endswith("/*"):
        return ""
    # "a.org/?c" is the page "a.org/"; "a.org" would be the whole site
    if not path and re.search(r"[?#]", line):
        path = "/"
    entry = host + path
    return entry if ENTRY.fullmatch(entry) or _is_ip(host) else ""


def _hash_entry(entry: str) -> int:
    # 64 bits; a character that has no UTF-8 counts as a question mark
    digest = hashlib.blake2b(entry.encode(errors="replace"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
