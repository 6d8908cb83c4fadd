"""How much of the whole chain is done, and about how long the rest takes: printed whenever DVC starts a command.

Still to come are the command itself, the commands that dvc.lock does not have with today's parameters, and all that
read what one of these writes; some of the last may turn out to be done, where what they read has not changed. The count
covers the whole chain, whatever targets DVC was given, but not what `dvc repro -f` does again.

A command is expected to take what the planner has estimated for this params.yaml or, without an estimate, what its
stage took in a run of the default scale. What finished commands have taken corrects both; for a command that was killed
and resumed, this is the time since it was resumed.
"""

import json
import re
from collections.abc import Iterable
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from stages.files.paths import CHECKED
from stages.files.storage import sha256, write_atomically
from stages.runner import handover
from stages.runner.handover import Command, seconds_taken
from stages.schema.settings import PATH, Settings

LOCK = Path("dvc.lock")
PLAN = Path("data/plan.json")  # by the planner: seconds by command, and the SHA-256 of params.yaml then
USUAL = {  # seconds of one command of a stage: scale `laptop`, two threads of an AMD EPYC with AVX-512
    "settings": 1, "corpus": 1, "filtering": 1, "tokenization": 1, "tasks": 4, "baselines": 2, "parameters": 2,
    "pretraining": 37, "finetuning": 272, "noise": 22, "cross_domain": 15, "convergence": 24,
    "question_answering": 41, "sentence_pairs": 1, "translation": 23, "timing": 28, "audit": 1, "analysis": 9,
    "report": 5,
}  # fmt: skip
OTHER = 10  # seconds of one command of any other stage, which somebody has added
BELIEVED = 60.0  # seconds added to what others took and to what they were expected to: little evidence corrects little


class _Lock(yaml.CSafeLoader):
    """Reads a float such as 1e-08 as YAML 1.2, in which DVC writes it; to YAML 1.1 that is a text."""


_Lock.add_implicit_resolver(  # the list: the characters that such a float may begin with
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def finished(settings: Settings, *names: str) -> list[str]:
    """Returns those of the named commands (`pretraining@original-tiny`) that are finished, in the given order.

    dvc.lock has them with today's parameters, no other command has written an input since, and their outputs are there.
    Edited code, original data and an input that is a part of another's output do not count here; `dvc status` compares
    them as well, and takes its time.
    """
    stages = yaml.load(LOCK.read_text(), _Lock)["stages"] if LOCK.exists() else {}
    written = {out["path"]: out["md5"] for stage in stages.values() for out in stage.get("outs", [])}
    present = settings.model_dump(mode="json", exclude_unset=True)  # as params.yaml has them: DVC knows no defaults

    def value(key: str) -> Any:  # of a key such as `data.root`; None where there is no such key
        section = present
        for part in key.split("."):
            section = section.get(part) if isinstance(section, dict) else None
        return section

    def is_finished(stage: dict) -> bool:
        used = stage.get("params", {}).get("params.yaml", {})
        return (
            all(value(key) == recorded for key, recorded in used.items())
            and all(written.get(dep["path"], dep["md5"]) == dep["md5"] for dep in stage.get("deps", []))
            and all(Path(out["path"]).exists() for out in stage.get("outs", []))
        )

    return [name for name in names if name in stages and is_finished(stages[name])]


def report(settings: Settings, name: str) -> None:
    """Prints how far the chain is when the command `name` (as DVC names it) starts; nothing for one not in dvc.yaml."""
    commands = handover.commands(settings)
    if name not in commands:
        return
    remaining = still_to_come(settings, commands, name)
    seconds = expected(commands, remaining)
    to_go, total = sum(seconds[other] for other in remaining), sum(seconds.values())
    print(
        f"{name} is {len(commands) - len(remaining) + 1} of {len(commands)}: {1 - to_go / total:.0%} of the work is "
        f"done, about {duration(to_go)} to go",
        flush=True,
    )


def still_to_come(settings: Settings, commands: dict[str, Command], name: str) -> list[str]:
    """Names the commands that DVC has yet to run: those not done, and those that read what one of them writes.

    Args:
        settings, commands: of params.yaml, and what `handover.commands` returns for them.
        name: the command that is at work, which counts as not done; empty where none is.
    """
    remaining, changed = [], set()
    done = set(finished(settings, *commands))
    for other, command in commands.items():
        if other == name or other not in done or any(touch(path, changed) for path in command.reads):
            remaining.append(other)
            changed |= set(command.writes) - {CHECKED}  # its content is always the same
    return remaining


def touch(path: Path, changed: Iterable[Path]) -> bool:
    """Whether a path is one of those that change, lies below one of them, or is a folder above one."""
    return any(path.is_relative_to(other) or other.is_relative_to(path) for other in changed)


def expected(commands: dict[str, Command], remaining: list[str]) -> dict[str, float]:
    """Estimates the seconds of every command by name, ended ones too, corrected by what those that have ended took.

    The factor is the seconds taken over those expected, summed over the ended commands of the same stage. Where there
    are none, it is summed over all ended commands of the same kind, with BELIEVED added to both sums: the planner's
    estimates for this scale, and what the default scale took, are two kinds, not wrong by the same factor.
    commands: as `handover.commands` returns them. remaining: the names of those that have not ended.
    """
    planned = _plan()
    frame = pd.DataFrame(
        {
            "stage": command.stage,
            "planned": name in planned,
            "expected": planned.get(name, USUAL.get(command.stage, OTHER)),
            "taken": nan if name in remaining else seconds_taken(name),
        }
        for name, command in commands.items()
    )
    ended = frame.dropna()  # without those whose record has no time
    of_stage = ended.groupby("stage")[["expected", "taken"]].sum()
    of_kind = ended.groupby("planned")[["expected", "taken"]].sum().reindex([True, False], fill_value=0.0) + BELIEVED
    correction = frame["stage"].map(of_stage["taken"] / of_stage["expected"])
    correction = correction.fillna(frame["planned"].map(of_kind["taken"] / of_kind["expected"]))
    return dict(zip(commands, frame["expected"] * correction, strict=True))


def _plan() -> dict[str, float]:
    """The planner's seconds by command; empty if it left none for params.yaml as it is. ValueError where damaged."""
    if not PLAN.exists():
        return {}
    try:
        plan = json.loads(PLAN.read_text())
        return plan["seconds"] if plan["params"] == sha256(PATH) else {}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{PLAN}: damaged; delete it, or run `python -m stages.tools.planner`") from None


def write_plan(seconds: dict[str, float]) -> None:
    """Leaves the planner's estimate, seconds by command, with the digest of params.yaml, for `report`."""
    write_atomically(PLAN, json.dumps({"params": sha256(PATH), "seconds": seconds}, indent=1, sort_keys=True) + "\n")


def duration(seconds: float) -> str:
    """Formats seconds in the largest unit that they fill, else in s; one decimal below 10 of it: `1.5 h`, `17 min`."""
    units = (("years", 31_557_600), ("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))  # a year of 365.25 days
    unit, length = next(((unit, length) for unit, length in units if seconds >= length), units[-1])
    return f"{seconds / length:.{0 if seconds >= 10 * length else 1}f} {unit}"
