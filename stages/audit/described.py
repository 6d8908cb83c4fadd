"""The checks that checks.yaml describes: readings, counts, averages, GRIM (can whole numbers give a printed mean?)."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import yaml

from stages.audit.closed_formulas import bert
from stages.audit.findings import BEST, NOTE, Finding, chance, compared, excludes, possible
from stages.audit.printed import EDITIONS, numbers
from stages.evidence.arithmetic import FAILS, HOLDS, NOT_DECIDED, judge


@cache
def content() -> dict:
    """Returns what checks.yaml holds; the comments in the file describe its sections and keys."""
    return yaml.safe_load(Path(__file__).with_name("checks.yaml").read_text(encoding="utf-8"))


def findings() -> list[Finding]:
    """Makes all checks of checks.yaml: its readings, then counts, averages, and GRIM by column and by printed value."""
    checks, readings = content(), []
    for entry in checks["readings"]:
        because = f"{entry['because']} (read: {entry['where']})"
        readings.append(Finding(entry["check"], entry["statement"], entry["verdict"], because, by="reading"))
    kinds = ((_count, checks["counts"]), (_average, checks["averages"]), (_joined, checks["grim"]["joined"]))
    return [
        *readings,
        *(make(check) for make, entries in kinds for entry in entries for check in expanded(entry)),
        *(finding for entry in checks["grim"]["values"] for finding in _printed_means(entry)),
    ]


def expanded(entry: dict) -> Iterator[dict]:
    """Yields an entry once for every combination of the values in `each`, which its texts name in braces, as {size}.

    Each copy has the values as further keys, by their names in `each`, and two more, which are None where they do not
    apply: `paper`, the prefix of the tables of its `edition`, and `examples`, the number of those behind its `column`.
    """
    for values in product(*entry["each"].values()):
        fields = dict(zip(entry["each"], values, strict=True))
        fields["paper"] = EDITIONS.get(fields.get("edition"))
        fields["examples"] = content()["grim"]["examples"].get(fields.get("column"))
        texts = {key: value.format(**fields) for key, value in entry.items() if isinstance(value, str)}
        yield entry | fields | texts


def _compared(entry: dict, text: str, exact: Fraction, more: str = "") -> Finding:
    """Judges a printed number, `text`, by the exact one; `more` is added to the arithmetic."""
    return Finding(entry["check"], entry["statement"], judge(text, exact), compared(text, exact) + more)


def _count(entry: dict) -> Finding:
    """Checks a printed count (a field of Count) or, with `saved`, the printed per cent that an operator saves of it."""
    text = numbers(entry["table"])[entry["row"], entry["column"]]
    counted = getattr(bert(entry["operator"], entry["size"]), entry["count"])
    if entry.get("saved"):
        whole = getattr(bert("original", entry["size"]), entry["count"])
        return _compared(entry, text, Fraction(100 * (whole - counted), whole))
    arithmetic = f"printed {int(text):,}, counted {counted:,}{entry.get('remark', '')}"
    return Finding(entry["check"], entry["statement"], HOLDS if int(text) == counted else FAILS, arithmetic)


def mean(cells: dict[str, Fraction], definition: str) -> Fraction:
    """Averages the cells of a row, numbers by column, by one of the `definitions` of checks.yaml, lists of columns."""

    def average(columns: list) -> Fraction:  # a list within the list is averaged first, as the two splits of MNLI are
        values = [average(column) if isinstance(column, list) else cells[column] for column in columns]
        return Fraction(sum(values), len(values))

    return average(content()["definitions"][definition])


def _average(entry: dict) -> Finding:
    """Checks a printed average by the definitions that its entry names (`by`), the most favourable one if several."""
    table = numbers(entry["table"])
    cells = {column: Fraction(text) for (row, column), text in table.items() if row == entry["row"]}
    text = table[entry["row"], entry["column"]]
    means = {name: mean(cells, name) for name in entry["by"]}
    if len(means) == 1:
        beside = entry.get("beside")  # another definition, whose average is shown and not judged
        more = f"; of {beside} {float(mean(cells, beside)):.3f}" if beside else ""
        return _compared(entry, text, *means.values(), more)
    verdicts = {name: judge(text, exact) for name, exact in means.items()}
    shown = ", ".join(f"{name} {float(exact):.4f} ({verdicts[name]})" for name, exact in means.items())
    verdict = min(verdicts.values(), key=BEST.index)
    return Finding(entry["check"], entry["statement"], verdict, f"printed {text}; {shown}")


def _joined(entry: dict) -> Finding:
    """Checks by GRIM whether all cells of a column can be means of `runs` runs; a note where GRIM excludes nothing."""
    table, n, runs = numbers(entry["table"]), entry["examples"], entry["runs"]
    passed = sum(possible(table[row, entry["column"]], n, runs) == HOLDS for row in entry["rows"])
    arithmetic = f"{passed} of {len(entry['rows'])}; {100 * chance(n, runs):.0f} % of arbitrary values would pass"
    verdict = NOTE if not excludes(n, runs) else HOLDS if passed == len(entry["rows"]) else FAILS
    return Finding(entry["check"], entry["statement"], verdict, arithmetic)


def _printed_means(entry: dict) -> Iterator[Finding]:
    """Checks by GRIM whether each printed score can be the accuracy of one run, or the mean of five.

    A score that several operators or editions print is checked once. The check is a note where any number of two
    decimals could be a mean of five, and not decided where only another number of runs, up to ten, fits the score.
    """
    for column in entry["each"]["column"]:
        n, seen = content()["grim"]["examples"][column], {}
        for edition, operator in product(entry["editions"], entry["operators"]):
            text = numbers(entry["table"].format(paper=EDITIONS[edition]))[f"base.{operator}", column]
            seen.setdefault(text, []).append(f"{edition} {operator}")
        for text, who in seen.items():
            one, five = (possible(text, n, runs) for runs in entry["runs"])
            fitting = [str(runs) for runs in range(1, 11) if possible(text, n, runs) == HOLDS]
            arithmetic = (
                f"one run {one}, mean of five {five}; numbers of runs up to 10 that fit: {', '.join(fitting) or 'none'}"
            )
            fields = {"column": column, "text": text, "who": ", ".join(who), "examples": n}
            excludes_nothing = not excludes(n, max(entry["runs"]))
            verdict = NOTE if excludes_nothing else min((one, five), key=BEST.index)
            more = "; any value of two decimals would fit five" if excludes_nothing else ""
            if verdict == FAILS and fitting:
                verdict, more = NOT_DECIDED, "; the number of runs is not stated"
            yield Finding(
                entry["check"].format(**fields), entry["statement"].format(**fields), verdict, arithmetic + more
            )
