"""The stages of dvc.yaml, and the records that must exist before a stage runs.

A stage that other stages read leaves a record in data/runs as the last output, which shows that the stage has ended.
DVC compares the content of inputs; this module only reports a stage that was started too early.
"""

from functools import cache
from pathlib import Path

from stages.files.documents import read_yaml
from stages.files.paths import CHECKED, RUNS, TASK_FOLDER

PIPELINE = Path(__file__).parents[2] / "dvc.yaml"
# inputs that a study of pre-training does not make
MAY_LACK = {"analysis": (TASK_FOLDER,)}


@cache
def pipeline() -> dict[str, dict]:
    """Reads the entries of dvc.yaml by the names of the stages, in the order of the file."""
    return read_yaml(PIPELINE)["stages"]


def list_outputs(stage: str) -> list[Path]:
    """Lists the paths under `outs` of a stage of dvc.yaml."""
    paths = []
    for entry in pipeline()[stage]["outs"]:
        # a path with options is a dictionary {path: options}
        paths.append(Path(entry if isinstance(entry, str) else next(iter(entry))))
    return paths


def require_inputs(stage: str) -> None:
    """Checks that the stages whose outputs a stage reads have run. A stage that is not in dvc.yaml has no inputs.

    Folders to which several stages add (data/observations) are not checked: a pipeline may leave some stages out.

    Raises:
        ValueError: an input was not made yet; the message names the input and the command that makes the input.
    """
    if stage not in pipeline():
        return
    makers = {output: maker for maker in pipeline() for output in list_outputs(maker)}
    # settings.txt shows itself that `params.yaml` was checked
    optional = (CHECKED, *MAY_LACK.get(stage, ()))
    for path in map(Path, pipeline()[stage]["deps"]):
        if path in makers and path not in optional:
            record = RUNS / f"{makers[path]}.json"
            if not record.exists() or not path.exists():
                raise ValueError(
                    f"{path}: not made yet; `dvc repro {stage}` runs what comes before {stage}, and {stage}"
                )
