"""Checks, before any other stage runs, that the files in params.yaml, and the outputs of an experiment, exist."""

import os
from pathlib import Path

from stages.files.paths import CHECKED, EMBEDDED
from stages.files.stand_ins import require_data
from stages.files.yaml_files import read_yaml
from stages.originals.corpus_files import find_files
from stages.originals.pairs import require_pairs
from stages.originals.tasks import require_glue, require_questions
from stages.schema.settings import PATH, Settings


def require_sources(settings: Settings) -> None:
    """Checks that all files and folders that the stages of this run would read exist and hold data.

    Raises:
        ValueError: files are missing, or are placeholders such as Git LFS pointers. The message has a line for each
            kind of files, with the first wrong file, the key and the remedy.
    """
    checks = [check_vocabulary, check_annotation]
    for source in {settings.data.source, settings.task_source} - {"hub"}:
        folder = settings.data.find_folder(source)
        # Without this README.md, which `is_generated` looks for, the report would compare generated data with papers.
        if folder == EMBEDDED and not (folder / "README.md").is_file():
            raise ValueError(
                f"{folder}: no README.md, which marks the data as generated; `git checkout -- data/embedded` restores "
                "the folder"
            )
        # One error here, in place of an error for each kind of files below.
        if not folder.is_dir():
            raise ValueError(f"data.root: {folder.absolute()}: no such folder; put the original files there")
    if settings.data.source != "hub":
        checks += [check_text, require_pairs]
    if settings.task_source != "hub":
        checks += [require_glue, require_questions]
    # Collected, so that a user sees all problems at once.
    problems = []
    for check in checks:
        try:
            check(settings)
        except (ValueError, OSError) as error:
            problems.append(f"  {error}")
    if problems:
        raise ValueError("\n".join([f"{PATH}: {len(problems)} problem(s) with the files named there", *problems]))


def read_lock() -> dict[str, dict]:
    """Reads what dvc.lock recorded of each stage's last run, by stage; {} without the file."""
    path = Path("dvc.lock")
    return read_yaml(path)["stages"] if path.exists() else {}


def require_outputs() -> None:
    """Checks, in an experiment of DVC, that the outputs of all stages exist."""
    # at the end of an experiment, DVC saves all outputs, and looks for missing outputs in the remote
    if "DVC_EXP_NAME" not in os.environ:
        return
    missing = []
    for stage in read_lock().values():
        for output in stage["outs"]:
            path = Path(output["path"])
            # this stage writes CHECKED
            if path != CHECKED and not path.exists():
                missing.append(path)
    if missing:
        raise ValueError(
            f"{missing[0]} and {len(missing) - 1} more outputs are missing, but with an experiment DVC saves all; "
            "run `git checkout params.yaml`, then `dvc pull` or `dvc repro`"
        )


def check_text(settings: Settings) -> None:
    """Checks the text files of the corpus."""
    for path in find_files(settings.data.folder, settings.corpus.files):
        require_data(path)


def check_vocabulary(settings: Settings) -> None:
    """Checks the file of the vocabulary."""
    name = settings.tokenization.vocabulary
    # A name without the suffix .txt may be a vocabulary of the hub.
    if name is None or not name.endswith(".txt"):
        return
    path = Path(settings.data.root or ".") / name
    if not settings.data.root or not path.is_file():
        raise ValueError(
            f"tokenization.vocabulary: {path}: no such file below data.root; put the file there, or say null, which "
            "trains a vocabulary on the text"
        )
    require_data(path)


def check_annotation(settings: Settings) -> None:
    """Checks the blocklists and the language model that annotate documents."""
    annotation = settings.filtering.annotation
    if annotation.blocklists and not Path(annotation.blocklists).is_dir():
        raise ValueError(
            f"filtering.annotation.blocklists: {annotation.blocklists}: no such folder; unpack the UT1 lists there, or "
            "set the key to null"
        )
    if annotation.kenlm_model and not Path(annotation.kenlm_model).is_file():
        raise ValueError(
            f"filtering.annotation.kenlm_model: {annotation.kenlm_model}: no such file; "
            "fetch the model, or set the key to null"
        )
