"""The stages in dvc.yaml. Inputs must exist before a stage runs, and must not change while the stage runs.

A stage that other stages read leaves a record in data/runs as the last output.
"""

from functools import cache
from pathlib import Path

from stages.files.paths import CHECKED, RUNS, TASK_FOLDER
from stages.files.storage import read_states
from stages.files.yaml_files import list_values, read_yaml
from stages.schema.settings import PATH, Settings, load_settings

PIPELINE = Path(__file__).parents[2] / "dvc.yaml"
# inputs that may be missing: a study of pre-training has no tasks
MAY_LACK = {"analysis": (TASK_FOLDER,)}
# by the name of a setting the value, and by the path of a file its size and time
Inputs = dict[str | Path, object]


@cache
def read_pipeline() -> dict[str, dict]:
    """Reads the entries of dvc.yaml by the names of the stages, in the order of the file."""
    return read_yaml(PIPELINE)["stages"]


def list_outputs(stage: str) -> list[Path]:
    """Lists the paths under `outs` of a stage of dvc.yaml; for corpus: data/corpus and data/runs/corpus.json."""
    paths = []
    for entry in read_pipeline()[stage]["outs"]:
        # a path with options is a dictionary {path: options}
        paths.append(Path(entry if isinstance(entry, str) else next(iter(entry))))
    return paths


def require_inputs(stage: str) -> None:
    """Checks that all inputs of a stage in dvc.yaml exist, and that the stages which make these inputs have ended.

    Raises:
        ValueError: an input was not made yet; the message names the command that makes the input.
    """
    if stage not in read_pipeline():
        return
    # path of an output -> name of the stage that makes the output
    makers = {output: maker for maker in read_pipeline() for output in list_outputs(maker)}
    # stage settings, which writes CHECKED (data/settings.txt), has no record; MAY_LACK: some studies lack the input
    optional = (CHECKED, *MAY_LACK.get(stage, ()))
    # folders to which several stages add (data/observations) have no maker, and are not checked
    for path in map(Path, read_pipeline()[stage]["deps"]):
        if path in makers and path not in optional:
            # a stage writes its record last
            record = RUNS / f"{makers[path]}.json"
            if not record.exists() or not path.exists():
                raise ValueError(f"{path}: not made yet; run `dvc repro {stage}`, with all stages before {stage}")


def read_inputs(stage: str, settings: Settings) -> Inputs:
    """Reads the inputs that dvc.yaml lists for a stage; {} for a stage that is not in dvc.yaml.

    Returns:
        Name of a setting, such as "params.yaml: corpus.documents" -> value in `settings`; and path of a file -> (size
        in bytes, time of modification in ns).
    """
    inputs: Inputs = {}
    for key, value in select_values(stage, settings.model_dump()).items():
        inputs[f"{PATH}: {key}"] = value
    for name in read_pipeline().get(stage, {"deps": []})["deps"]:
        # the file of a user's own operators is a setting
        path = name.replace("${operators_file}", settings.operators_file)
        inputs.update(read_states(Path(path)))
    return inputs


def select_values(stage: str, params: dict) -> dict[str, object]:
    """Lists the settings that dvc.yaml lists for a stage, by dotted key; `params` is the content of params.yaml."""
    listed = read_pipeline().get(stage, {}).get("params", [])
    # `finetuning.${timing.protocol}` counts as `finetuning`; with the point at the end, `task` does not match `tasks`
    sections = tuple(f"{key.partition('${')[0].rstrip('.')}." for key in listed)
    return {key: value for key, value in list_values(params).items() if f"{key}.".startswith(sections)}


def require_unchanged(stage: str, inputs: Inputs) -> None:
    """Checks, after a stage has run, that the inputs (`read_inputs`) are the same as before.

    Raises:
        RuntimeError: an input was changed, replaced, added or deleted; DVC then writes nothing into dvc.lock.
    """
    # DVC compares inputs before a stage and writes dvc.lock afterwards, so an input that changes meanwhile would be
    # locked although the stage has read another version
    after = read_inputs(stage, load_settings())
    changed = sorted(str(name) for name in inputs.keys() | after.keys() if inputs.get(name) != after.get(name))
    if changed:
        further = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise RuntimeError(
            f"{changed[0]}{further} changed while {stage} ran, so {stage} may have read the version before; run the "
            "same command again, which computes only jobs whose inputs have changed"
        )
