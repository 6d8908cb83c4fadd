"""Checks, before any other stage runs, that the files in params.yaml exist."""

from collections.abc import Callable
from pathlib import Path

from stages.files.paths import EMBEDDED
from stages.files.stand_ins import require_data
from stages.originals.pairs import require_pairs
from stages.originals.tasks import require_glue, require_questions
from stages.originals.text import find_files
from stages.schema.settings import PATH, Settings

RESTORE = "`git checkout -- data/embedded` restores the folder"


def require_sources(settings: Settings) -> None:
    """Checks that all files and folders that the stages of this run would read exist and hold data.

    Raises:
        ValueError: files are missing, or placeholders such as Git LFS pointers; a line for each kind of files names the
            first such file, the key and the remedy.
    """
    checks = [check_vocabulary, check_annotation]
    for source in {settings.data.source, settings.task_source} - {"hub"}:
        folder = settings.data.find_folder(source)
        # Without the page, a run on generated data would be compared with the papers.
        if folder == EMBEDDED and not (folder / "README.md").is_file():
            raise ValueError(f"{folder}: no README.md, which marks the data as generated; {RESTORE}")
        # Without the folder, all files would be missing, too.
        if not folder.is_dir():
            raise ValueError(f"data.root: {folder.absolute()}: no such folder; put the original files there")
    if settings.data.source != "hub":
        checks += [check_text, check_pairs]
    if settings.task_source != "hub":
        checks += [check_tasks, check_questions]
    problems = list_problems(settings, checks)
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise ValueError(f"{PATH}: {len(problems)} problem(s) with the files named there\n{lines}")


def list_problems(settings: Settings, checks: list[Callable[[Settings], None]]) -> list[str]:
    """Runs all checks and lists the messages of the checks that fail."""
    # A user sees all problems at once, before the hours after which a stage would need a file.
    problems = []
    for check in checks:
        try:
            check(settings)
        except (ValueError, OSError) as error:
            problems.append(str(error))
    return problems


def check_text(settings: Settings) -> None:
    """Checks the text files of the corpus."""
    for path in find_files(settings.data.folder, settings.corpus.files):
        require_data(path)


def check_pairs(settings: Settings) -> None:
    """Checks the files of sentence pairs."""
    for protocol in settings.translation.protocols.values():
        require_pairs(settings.data.folder, protocol)


def check_tasks(settings: Settings) -> None:
    """Checks the files of the GLUE tasks."""
    require_glue(settings.task_folder, settings.tasks.names)


def check_questions(settings: Settings) -> None:
    """Checks the files of the sets of questions."""
    require_questions(settings.task_folder, settings.tasks.questions)


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
