"""Study: how soon does a masked language model learn to attend, by the length of the sequences that it trains on?

Trains the original operator from three seeds on sequences of 8, 16, 32 and 64 tokens of one corpus, in batches of
equally many tokens: on generated text at scale `laptop` and, where --root has the files of scale `files`, on English
Wikipedia. Writes FOLDER/observations.csv (the validation loss by step, on sequences of the run's own length),
leaving.csv (the first evaluation below a threshold between the plateau, where the loss stalls, and the knee, where its
fall after that slows down) and curves.svg. Work in progress stays in FOLDER/work: a study that was stopped goes on
where it was. As contexts differ, losses at two lengths cannot be compared; the steps at which runs leave can.
"""

import json
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import yaml
from matplotlib.figure import Figure

from stages.corpus import stage as corpus_stage
from stages.evidence import survival
from stages.filtering import stage as filtering
from stages.masked_lm.run import PretrainingRun
from stages.plumbing import jobs, scales
from stages.plumbing.files import TOKENS, place, temporary_sibling, write_atomically
from stages.plumbing.settings import Settings, load_settings
from stages.pretraining import stage as pretraining
from stages.report.drawing import SETTINGS
from stages.report.tables import csv_of
from stages.sequences.packing import INDEX, read_index
from stages.tokenization import stage as tokenization

LENGTHS = (8, 16, 32, 64)  # tokens of a sequence
SEEDS = (1, 2, 3)
COLUMNS = ["corpus", "length", "seed", "step", "validation_loss"]


@dataclass(frozen=True)
class Corpus:
    """A corpus of the study and the recipe of the runs on it.

    name: as in the results. scale: whose settings hold, except for what follows. tokenization, pretraining: the keys of
    these two sections that the study sets. size: a name in the scale's `models`. tokens: of a batch. threshold: the
    validation loss, in nats, between plateau and knee, below which a run has left; chosen when curves had been seen.
    """

    name: str
    scale: str
    tokenization: dict
    pretraining: dict
    size: str
    tokens: int
    threshold: float


# As in the scales, but 4,000 steps, not 2,800, and more evaluations of short runs; fixed here against changes there.
SHORT = {"steps": 1_200, "learning_rate": 3e-3, "evaluation_interval": 50}
LONG = {"steps": 4_000, "learning_rate": 2e-3, "evaluation_interval": 100}
CORPORA = (
    Corpus("generated text", "laptop", {}, SHORT, "tiny", 384, 2.5),
    Corpus("English Wikipedia", "files", {"vocabulary_size": 4_096}, LONG, "mini", 2_048, 5.5),
)


def main(folder: Path, root: Path | None, workers: int | None) -> None:
    """Runs what is not done yet and writes what the study has found; my_operators.py is read in the working directory.

    Args:
        folder: gets the results; as `root`, an absolute path.
        root: the folder with the data of scale `files`; None leaves English Wikipedia out.
        workers: processes; None takes every core.
    """
    studied = [corpus for corpus in CORPORA if corpus.scale != "files" or root]
    if not root:
        print("English Wikipedia is left out: --root names no folder of data")
    losses = pd.concat([pd.DataFrame(_losses(corpus, folder, root, workers), columns=COLUMNS) for corpus in studied])
    write_atomically(folder / "observations.csv", csv_of(losses))
    write_atomically(folder / "leaving.csv", csv_of(leaving(losses)))
    write_atomically(folder / "curves.svg", figure(losses))


def leaving(losses: pd.DataFrame) -> pd.DataFrame:
    """Finds when every run has left the plateau, from rows of COLUMNS.

    Returns a row for every run: corpus, length, seed, step (the first evaluation with a validation loss below the
    corpus' threshold; the last step where there is none), reached (whether there is one) and final_loss in nats.
    """
    thresholds = {corpus.name: corpus.threshold for corpus in CORPORA}
    rows = []
    for (name, length, seed), run in losses.groupby(["corpus", "length", "seed"], sort=False):
        event = survival.first_below(run["step"], run["validation_loss"], thresholds[name])
        rows.append((name, length, seed, *event, run["validation_loss"].iloc[-1]))
    return pd.DataFrame(rows, columns=["corpus", "length", "seed", "step", "reached", "final_loss"])


def figure(losses: pd.DataFrame) -> str:
    """Draws rows of COLUMNS as SVG: loss by step, a panel per corpus, a line per run, in the colour of its length."""
    panels = list(losses.groupby("corpus", sort=False))
    colours = dict(zip(LENGTHS, ("#0072b2", "#009e73", "#b58900", "#d55e00"), strict=True))
    svg = StringIO()
    with mpl.rc_context(SETTINGS | {"svg.hashsalt": "lengths"}):  # equal losses give equal bytes
        whole = Figure((4.2 * len(panels) + 1.2, 3.2), layout="constrained", facecolor="white")
        for axes, (name, runs) in zip(whole.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            for (length, seed), run in runs.groupby(["length", "seed"]):
                label = f"{length} tokens" if seed == SEEDS[0] else None  # one entry of the legend per length
                axes.plot(run["step"], run["validation_loss"], color=colours[length], lw=1.2, label=label)
            threshold = next(corpus.threshold for corpus in CORPORA if corpus.name == name)
            axes.axhline(threshold, color="#767676", lw=0.8, ls=(0, (4, 3)))
            axes.set(title=name, xlabel="step", ylabel="validation loss, nats")
        lines = whole.axes[-1].get_legend_handles_labels()
        whole.legend(*lines, title="sequences of", loc="outside right center")
        whole.savefig(svg, format="svg", metadata={"Date": None})
    return svg.getvalue()


def _losses(corpus: Corpus, folder: Path, root: Path | None, workers: int | None) -> Iterator[tuple]:
    """Trains a corpus' missing runs, in FOLDER/work/SCALE as in a checkout; yields a row of COLUMNS per evaluation."""
    work, operators = folder / "work" / corpus.scale, Path("my_operators.py").read_text(encoding="utf-8")
    write_atomically(work / "params.yaml", yaml.safe_dump(_params(corpus, root)))
    write_atomically(work / "my_operators.py", operators)
    with chdir(work):  # into which the stages write
        settings = load_settings()
        if not (TOKENS / INDEX).exists():
            for stage in (corpus_stage, filtering, tokenization):
                stage.main(settings)
        # seed by seed, so that a study that was stopped has every length for the first seeds
        runs = sorted((run for length in LENGTHS for run in _runs(corpus, settings, length)), key=lambda run: run.seed)
        planned = [
            jobs.Job(f"{corpus.name}, {run.length} tokens, seed {run.seed}", run, (_cut(run.length),)) for run in runs
        ]
        results = jobs.run(_pretrain, planned, "pretraining", workers, on_gpu=True)
    for run, (_, result) in zip(runs, results, strict=True):
        for entry in result["log"]:
            yield corpus.name, run.length, run.seed, entry["step"], entry["validation_loss"]


def _params(corpus: Corpus, root: Path | None) -> dict:
    """Returns the content of params.yaml for a corpus, packed into sequences of the greatest length; see `_cut`."""
    content = yaml.safe_load(scales.read(corpus.scale))
    content["sizes"] = [corpus.size]
    content["tokenization"] |= corpus.tokenization | {"sequence_length": max(LENGTHS)}
    # one length throughout a run: no shorter sequences at its beginning
    content["pretraining"] |= corpus.pretraining | {"seeds": [*SEEDS], "sequence_length_warmup": None}
    content["convergence"]["steps"] = [corpus.pretraining["steps"]]  # the scale's may lie beyond the last step
    if content["data"]["source"] == "files":
        content["data"]["root"] = str(root)
    return content


class Cut(PretrainingRun):
    """A pre-training run of the study. length: tokens of its sequences, which are those of `_cut`."""

    length: int


def _runs(corpus: Corpus, settings: Settings, length: int) -> Iterator[Cut]:
    """Yields the runs of one length, one per seed, whose batches have as many tokens as at every other length."""
    for run in pretraining.planned(settings, [("original", corpus.size)]):
        training = run.training.model_copy(update={"batch_size": corpus.tokens // length})
        yield Cut(**dict(run) | {"training": training}, length=length)


def _pretrain(run: Cut, folder: Path) -> dict:
    """Job: trains one run on sequences of its length, in `folder`, the job's own, and returns what `train` does."""
    from stages.pretraining.loop import train  # imported here because it loads torch, which only workers need

    # A table of curves for each job: in a shared one, the runs of one seed at several lengths would have one name.
    return train(run, _cut(run.length), folder, folder / "live.csv")


def _cut(length: int) -> Path:
    """Returns a folder with the packed corpus as sequences of `length` tokens, and makes it where there is none yet.

    It has the same files, by links where possible, and an index by which each sequence counts as several shorter ones:
    the files hold the tokens one after another. `length` divides the length of the packed sequences.
    """
    folder = TOKENS.with_name(f"tokens-{length}")
    if not folder.exists():
        index = read_index(TOKENS)
        parts = index["sequence_length"] // length
        with temporary_sibling(folder) as cut:
            for split in index["splits"].values():
                split["sequences"] *= parts
                for shard in split["shards"]:
                    (cut / shard["name"]).parent.mkdir(parents=True, exist_ok=True)
                    place(TOKENS / shard["name"], cut / shard["name"])
                    shard["sequences"] *= parts
            write_atomically(cut / INDEX, json.dumps(index | {"sequence_length": length}))
    return folder
