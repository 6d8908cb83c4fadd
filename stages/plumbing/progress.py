"""How far the whole chain is, and about how long it still takes: said whenever DVC starts a command.

Still to come are the command itself, those that dvc.lock does not have with the parameters of today, and all that read
what such a command writes; some of these may turn out to be done, where what they read has not changed. That is the
whole chain, whatever targets were named, and without what `dvc repro -f` does again.

A command is expected to take what the planner has said of it for this params.yaml or, where it has not, what its stage
took in a run of the default scale. What the commands before have taken corrects both; of one that was killed and
resumed, that is its last sitting alone.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stages.plumbing import done
from stages.plumbing.files import CHECKED, sha256, write_atomically
from stages.plumbing.handover import commands, filled, paths, pipeline
from stages.plumbing.observations import RUNS
from stages.plumbing.settings import PATH, Settings

PLAN = Path("data/plan.json")  # of the planner: seconds by command, and the SHA-256 of the params.yaml they are for
USUAL = {  # seconds of one command of a stage: scale `laptop`, two cores without AVX-512
    "settings": 1, "corpus": 3, "filtering": 2, "tokenization": 3, "tasks": 12, "baselines": 8, "parameters": 7,
    "pretraining": 78, "finetuning": 1206, "noise": 74, "cross_domain": 33, "convergence": 120,
    "question_answering": 121, "sentence_pairs": 3, "translation": 126, "timing": 148, "audit": 4, "analysis": 15,
    "report": 15,
}  # fmt: skip
OTHER = 10  # of a stage that somebody has added
BELIEVED = 60.0  # seconds that the others must have taken to weigh as much as what was expected of a stage


@dataclass(frozen=True)
class Command:
    """One command of dvc.yaml: its stage, and the data that it reads and writes."""

    stage: str
    reads: tuple[Path, ...]
    writes: tuple[Path, ...]


def say(settings: Settings, name: str) -> None:
    """Prints how far the chain is when a command starts; nothing for one that is not in dvc.yaml.

    Args:
        settings: of params.yaml.
        name: of the command, as DVC has it: `pretraining@original-tiny`.
    """
    known = every_command(settings)
    if name not in known:
        return
    left = still_to_come(settings, known, name)
    seconds = expected(known, left)
    to_go, whole = sum(seconds[each] for each in left), sum(seconds.values())
    print(
        f"{name} is {len(known) - len(left) + 1} of {len(known)}: {1 - to_go / whole:.0%} of the work is done, about "
        f"{duration(to_go)} to go",
        flush=True,
    )


def every_command(settings: Settings) -> dict[str, Command]:
    """All commands of dvc.yaml by their names, in an order in which each comes after what it reads."""
    found = {}
    for stage, entry in pipeline().items():
        reads, writes = (paths(entry[key]) for key in ("deps", "outs"))
        for name, arguments in commands(settings, stage).items():
            filled_in = (tuple(Path(filled(path, arguments)) for path in listed) for listed in (reads, writes))
            found[name] = Command(stage, *filled_in)
    return found


def still_to_come(settings: Settings, known: dict[str, Command], name: str) -> list[str]:
    """The command `name`, those that are not made, and those that read what one of them writes."""
    left, changed = [], set()
    made = set(done.made(settings, *known))
    for each, command in known.items():
        if each == name or each not in made or any(touch(path, changed) for path in command.reads):
            left.append(each)
            changed |= set(command.writes) - {CHECKED}  # whose content is always the same
    return left


def touch(path: Path, changed: Iterable[Path]) -> bool:
    """Whether a path is one of those that change, is below one, or holds one."""
    return any(path.is_relative_to(other) or other.is_relative_to(path) for other in changed)


def expected(known: dict[str, Command], left: list[str]) -> dict[str, float]:
    """Seconds of every command, corrected by those of its stage that have ended or, where none has, by all others."""
    planned = _plan()
    seconds = {name: planned.get(name, USUAL.get(command.stage, OTHER)) for name, command in known.items()}
    taken = {name: value for name in known if name not in left if (value := _taken(name)) is not None}

    def correction(names: Iterable[str], believed: float = 0.0) -> float | None:
        ended = [name for name in names if name in taken]
        before = believed + sum(seconds[name] for name in ended)
        return (believed + sum(taken[name] for name in ended)) / before if before else None

    # what the planner says of this scale, and what the default scale took, are not wrong by the same factor
    kinds = {
        kind: correction([name for name in known if (name in planned) == kind], BELIEVED) for kind in (True, False)
    }
    stages = {command.stage: [] for command in known.values()}
    for name, command in known.items():
        stages[command.stage].append(name)
    own = {stage: correction(names) for stage, names in stages.items()}
    return {name: value * (own[known[name].stage] or kinds[name in planned]) for name, value in seconds.items()}


def _taken(name: str) -> float | None:
    """Seconds of a command that has ended, by its record, which `require_inputs` has found to be JSON."""
    record = RUNS / f"{name.replace('@', '-')}.json"
    return json.loads(record.read_text()).get("seconds") if record.exists() else None


def _plan() -> dict[str, float]:
    if not PLAN.exists():
        return {}
    try:
        plan = json.loads(PLAN.read_text())
        return plan["seconds"] if plan["params"] == sha256(PATH) else {}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{PLAN}: damaged; delete it, or run `python -m stages.tools.planner`") from None


def write_plan(seconds: dict[str, float]) -> None:
    """Leaves what the planner says of params.yaml, seconds by command, for `say`."""
    write_atomically(PLAN, json.dumps({"params": sha256(PATH), "seconds": seconds}, indent=1, sort_keys=True) + "\n")


def duration(seconds: float) -> str:
    """Seconds as text, two digits, in the largest unit that they fill: `1.5 h`, `17 min`."""
    units = (("years", 31_557_600), ("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    unit, length = next(((unit, length) for unit, length in units if seconds >= length), units[-1])
    return f"{seconds / length:.{0 if seconds >= 10 * length else 1}f} {unit}"
