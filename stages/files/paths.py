"""The places of the files that stages leave."""

from pathlib import Path

# original files of source `embedded`
EMBEDDED = Path("data/embedded")
# shows that params.yaml has been checked
CHECKED = Path("data/settings.txt")
# shards NAME.jsonl.zst
CORPUS = Path("data/corpus")
# the same shards, of the documents that pass, and the ledger
FILTERED = Path("data/filtered")
LEDGER = FILTERED / "ledger.csv"
TOKENS = Path("data/tokens")
TOKENIZER = TOKENS / "tokenizer" / "tokenizer.json"
# TASK/SPLIT.parquet, and the number of examples by task and split
TASK_FOLDER = Path("data/tasks")
STATISTICS = TASK_FOLDER / "statistics.csv"
# OPERATOR-SIZE/seed-N, a model folder
PRETRAINED = Path("data/pretraining")
# OPERATOR-SIZE/seed-N/step-M, a model folder
INTERMEDIATE_MODELS = Path("data/intermediate_models")
# curves of all runs during pre-training; data/live has the curves of each run
LIVE = Path("data/live.csv")
# PROTOCOL-OPERATOR-SIZE/TASK-pretraining-SEED-finetuning-SEED, a model folder
FINETUNED = Path("data/finetuning")
# PROTOCOL-OPERATOR-SIZE.parquet
PREDICTIONS = Path("data/predictions")
# OPERATOR-SIZE.parquet
ANSWERS = Path("data/answers")
# PROTOCOL/, and the ledger
SENTENCE_PAIRS = Path("data/sentence_pairs")
# OPERATOR.parquet
TRANSLATIONS = Path("data/translations")
# STAGE.json, the record of a run
RUNS = Path("data/runs")
# STAGE/FINGERPRINT, the results of finished jobs
RESULTS = Path("data/results")
AUDIT = Path("data/audit/checks.csv")
ANALYSIS = Path("data/analysis")
REPORTS = Path("reports")


def name_curve(operator: str, size: str, seed: int) -> str:
    """Names the file with the curves of a run of pre-training, such as original-tiny-1.csv in data/live."""
    return f"{operator}-{size}-{seed}.csv"


def find_pretrained(operator: str, size: str, seed: int) -> Path:
    """Returns the folder of a model, such as data/pretraining/original-tiny/seed-1."""
    return PRETRAINED / f"{operator}-{size}" / f"seed-{seed}"


def find_model_after(operator: str, size: str, seed: int, step: int) -> Path:
    """Returns the folder of an intermediate model, saved after `step` updates of pre-training."""
    return INTERMEDIATE_MODELS / f"{operator}-{size}" / f"seed-{seed}" / f"step-{step}"


def find_finetuned(model: tuple[str, str, str], task: str, pretraining_seed: int, seed: int) -> Path:
    """Returns the folder of a model (protocol, operator and size), fine-tuned on `task` with `seed`."""
    return FINETUNED / "-".join(model) / f"{task}-pretraining-{pretraining_seed}-finetuning-{seed}"
