"""Points that a paper leaves open, next to the choice of this repository with the values of the run."""

import re
from typing import Any

import pandas as pd

from stages.report import deviations

NOT_HERE = "Nothing of this run depends on it"
KEY = re.compile(r"\{([^}]*)\}")  # a key of params.yaml in a sentence, such as {pretraining.steps}


def list_unspecified(params: dict, protocol: dict, source: str) -> pd.DataFrame:
    """Lists the points that a source leaves open, and the choice of this run.

    Args:
        params: the settings as nested dictionaries.
        protocol: the content of data/published/protocol.yaml; `unspecified` lists the open points of each source.
        source: the source, such as `courtois2024`.

    Returns:
        A row of texts per point, with the columns
        item: the point.
        candidates: plausible readings.
        inferred: the reading that follows from the numbers of the source.
        code: the reading of the released code.
        chosen: the choice of this run.
    """
    settings = deviations.list_settings(params)
    choices = deviations.read_deviations()["open"][source]
    rows = []
    for item in protocol[source]["unspecified"]:
        row = {
            "item": item["item"],
            "candidates": "; ".join(map(str, item.get("candidates", ()))),
            "inferred": item.get("inferred", ""),
            "code": item.get("released_code", ""),
            "chosen": describe_choice(choices[item["item"]], settings),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def describe_choice(choice: str | dict, settings: dict[str, Any]) -> str:
    """Fills a sentence of deviations.yaml with settings, or says that nothing of the run depends on the point.

    "in {pretraining.steps} steps" gives "in 1,200 steps".

    Args:
        choice: a sentence, or a dictionary of the sentence, `chosen`, and a condition for `deviations.is_met`, `needs`.
        settings: all settings by dotted key.
    """
    if isinstance(choice, str):
        choice = {"chosen": choice}
    sentence, needs = choice["chosen"], choice.get("needs")
    if needs and not deviations.is_met(needs, settings):
        return f"{NOT_HERE}: only with {deviations.describe_needs(needs)}."
    missing = [key for key in KEY.findall(sentence) if key not in settings]
    if missing:
        return f"{NOT_HERE}: no {missing[0]} in params.yaml."
    return KEY.sub(lambda match: deviations.show_setting(settings, match[1]), sentence)
