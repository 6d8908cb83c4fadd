"""What each paper leaves open, next to what is done here: the sentences of deviations.yaml, with this run's values."""

import pandas as pd

from stages.report import deviations

NOT_HERE = "Nothing of this run depends on it"


def unspecified(params: dict, protocol: dict, source: str) -> pd.DataFrame:
    """Lists what a source leaves open, and next to it what is done here.

    Args:
        params, protocol, source: as for `deviations.compare`; the protocol has the items in `unspecified`.

    Returns:
        A frame of texts, one row per open item: item (what is open), candidates (plausible readings), inferred (what
        follows from the source's own numbers), code (what the released code does), chosen (what this run does).

    Raises:
        ValueError: deviations.yaml has other items than those that are open, or names a setting that does not exist.
    """
    chosen, items = deviations.content()["open"][source], protocol[source]["unspecified"]
    if strange := set(chosen) ^ {item["item"] for item in items}:
        raise ValueError(f"{deviations.PATH.name} and the protocol of {source} do not agree on {sorted(strange)[0]!r}")
    return pd.DataFrame(
        [
            {
                "item": item["item"],
                "candidates": "; ".join(map(str, item.get("candidates", ()))),
                "inferred": item.get("inferred", ""),
                "code": item.get("released_code", ""),
                "chosen": _choice(chosen[item["item"]], params),
            }
            for item in items
        ]
    )


def _choice(choice: str | dict, params: dict) -> str:
    """Returns the sentence on an open item, or one that says what this run lacks for the item to matter.

    choice: the sentence, or a dict of it, `chosen`, and `needs`, key -> values: one key must have one of its values. A
    run must also have the part of params.yaml with each key that the sentence names in braces.
    """
    needs, sentence = ({}, choice) if isinstance(choice, str) else (choice.get("needs", {}), choice["chosen"])
    missing = [deviations.absent(params, key) for key in deviations.KEY.findall(sentence)]
    if needs and not any(_has(params, key, wanted) for key, wanted in needs.items()):
        missing = [deviations.absent(params, key) or f"{' or '.join(wanted)} in {key}" for key, wanted in needs.items()]
    if any(missing):
        return f"{NOT_HERE}: {', '.join(f'no {what}' for what in dict.fromkeys(filter(None, missing)))}."
    return deviations.filled(sentence, params)


def _has(params: dict, key: str, wanted: list) -> bool:
    """Whether a setting is there and has, or as a list contains, a wanted value."""
    if deviations.absent(params, key):
        return False
    value = deviations.find(params, key, key)
    if key == "operators":  # a name that `variants` defines counts as the operator that it is a variant of
        value = [params.get("variants", {}).get(name, {"operator": name})["operator"] for name in value]
    return not set(wanted).isdisjoint(value if isinstance(value, list) else [value])
