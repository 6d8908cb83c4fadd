"""Where the stages leave their files."""

from pathlib import Path

CHECKED = Path("data/settings.txt")  # says that params.yaml has been checked
CORPUS = Path("data/corpus")  # shards NAME.jsonl.zst
FILTERED = Path("data/filtered")  # the same shards, of the documents that pass, and the ledger
LEDGER = FILTERED / "ledger.csv"
TOKENS = Path("data/tokens")
TOKENIZER = TOKENS / "tokenizer" / "tokenizer.json"
TASK_FOLDER = Path("data/tasks")  # below it TASK/SPLIT.parquet
STATISTICS = TASK_FOLDER / "statistics.csv"  # number of examples by task and split
PRETRAINED = Path("data/pretraining")  # OPERATOR-SIZE/seed-N, a model folder
CHECKPOINTS = Path("data/checkpoints")  # OPERATOR-SIZE/seed-N/step-M, a model folder
LIVE = Path("data/live.csv")  # curves of pre-training while it goes on; data/live has those of each run
FINETUNED = Path("data/finetuning")  # PROTOCOL-OPERATOR-SIZE/TASK-pretraining-SEED-finetuning-SEED, a model folder
PREDICTIONS = Path("data/predictions")  # PROTOCOL-OPERATOR-SIZE.parquet
ANSWERS = Path("data/answers")  # OPERATOR-SIZE.parquet
SENTENCE_PAIRS = Path("data/sentence_pairs")  # below it PROTOCOL/, and the ledger
TRANSLATIONS = Path("data/translations")  # OPERATOR.parquet
RUNS = Path("data/runs")  # STAGE.json, the record of a run
RESULTS = Path("data/results")  # STAGE/FINGERPRINT: what a stage hands on of its finished jobs
AUDIT = Path("data/audit/checks.csv")
ANALYSIS = Path("data/analysis")
REPORTS = Path("reports")


def pretrained(operator: str, size: str, seed: int) -> Path:
    """The folder of a pre-trained model: operator and size as params.yaml names them, and the seed of pre-training."""
    return PRETRAINED / f"{operator}-{size}" / f"seed-{seed}"


def checkpoint(operator: str, size: str, seed: int, step: int) -> Path:
    """The folder of the model of `pretrained` as it was after `step` updates of its pre-training, from 0 on."""
    return CHECKPOINTS / f"{operator}-{size}" / f"seed-{seed}" / f"step-{step}"


def finetuned(model: tuple[str, str, str], task: str, pretraining_seed: int, seed: int) -> Path:
    """The folder of a model fine-tuned on `task` with `seed`; model: its protocol, operator and size."""
    return FINETUNED / "-".join(model) / f"{task}-pretraining-{pretraining_seed}-finetuning-{seed}"
