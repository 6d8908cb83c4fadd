"""The tables of how it was done: settings beside each paper, what the papers leave open, and the checklist."""

import pandas as pd

from stages.report.tables import MISSING, Grid, Heading, Value, plain, text
from stages.report.verdicts import PAPERS


def settings(frame: pd.DataFrame, source: str) -> Grid:
    """Every setting that a paper or its code states, beside this run's."""
    headings = {
        "setting": "Setting",
        "paper": "Paper",
        "code": "Authors' code, where the paper is silent" if source == "courtois2024" else "Setup that it follows",
        "run": "This run",
        "verdict": "Verdict",
    }
    if not frame["code"].any():
        del headings["code"]
    columns = {name: (Heading(label), filled if name != "setting" else str) for name, label in headings.items()}
    name = "settings" if source == "courtois2024" else f"settings_{source}"
    return plain(frame, columns, name=name, title=f"Settings beside {PAPERS[source]}", stage="report")


def own_settings(frame: pd.DataFrame) -> Grid:
    """The settings that no paper has."""
    columns = {"setting": (Heading("Setting"), str), "key": (Heading("Key of params.yaml"), filled)}
    columns["run"] = (Heading("This run"), filled)
    return plain(frame, columns, name="settings_own", title="Settings of this pipeline alone", stage="report")


def unspecified(frame: pd.DataFrame, source: str) -> Grid:
    """What a paper leaves open, what may be meant, and what was chosen."""
    headings = {
        "item": "Left open",
        "candidates": "Readings",
        "inferred": "Follows from its numbers",
        "code": "Authors' code",
        "chosen": "Chosen here",
    }
    if not frame["code"].any():
        del headings["code"]
    columns = {name: (Heading(label), filled if name != "item" else str) for name, label in headings.items()}
    return plain(frame, columns, name=f"open_{source}", title=f"Left open by {PAPERS[source]}", stage="report")


def checklist(entries: list[dict], values: dict[str, object]) -> Grid:
    """The reproducibility checklist with its answers; values fill the `{names}` in them."""
    frame = pd.DataFrame([{name: text.format(**values) for name, text in entry.items()} for entry in entries])
    columns = {"item": (Heading("Item"), str), "answer": (Heading("Answer"), text), "where": (Heading("Where"), text)}
    title = "Machine learning reproducibility checklist"
    return plain(frame, columns, name="checklist", title=title, stage="report")


def filled(value: str) -> Value:
    """A cell of text; a dash where there is none."""
    return Value(value or MISSING, kind="text")
