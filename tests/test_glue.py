"""GLUE in the original form, whole or cut down, and the metrics."""

from pathlib import Path
from types import SimpleNamespace

import datasets
import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.benchmarks.glue import TASKS
from stages.benchmarks.metrics import compute_metrics
from stages.schema.sections import Hub, HubRepository
from stages.tasks import glue
from stages.tasks import stage as tasks
from stages.tasks.examples import Examples
from tests.files import write_file
from tests.toy_tasks import EMBEDDED, LAPTOP, make_hub, make_settings

REAL = {  # examples of every split in the shared data, of which some files are subsets
    "cola": [8551, 1043],
    "sst2": [67349, 872],
    "mrpc": [3668, 408],
    "stsb": [5749, 1500],
    "qqp": [20000, 3496],
    "mnli": [10000, 9815, 1000],
    "qnli": [10475, 5463],
    "rte": [2490, 277],
}


def read_statistics(folder: Path) -> pd.DataFrame:
    """Those of the GLUE tasks."""
    frame = pd.read_csv(folder / "statistics.csv")
    return frame[frame["task"].isin(TASKS)]


def write(root: Path, name: str, *lines: str) -> Path:
    # A surrogate stands for a byte that is not UTF-8.
    return write_file(root / name, "\n".join([*lines, ""]).encode(errors="surrogateescape"))


def read(root: Path, task: str, split: int = 0) -> Examples:
    return glue.read_original(root, TASKS[task], TASKS[task].splits[split])


def read_hub(repository: Hub, task: str) -> Examples:
    """Reads the first validation split."""
    return glue.read_hub(repository, TASKS[task], TASKS[task].splits[1])


def test_the_embedded_tasks_are_read_like_real_tasks(tmp_path):
    tasks.build_tasks(tmp_path, make_settings(root=EMBEDDED))
    statistics = read_statistics(tmp_path)
    assert list(statistics["task"].unique()) == list(LAPTOP.tasks.names)
    assert statistics["examples"].isin([2000, 400]).all()
    assert not statistics[["subset", "reduced"]].any().any()
    for name in LAPTOP.tasks.names:
        task = TASKS[name]
        for split in task.splits:
            frame = pd.read_parquet(tmp_path / name / f"{split.name}.parquet")
            assert list(frame) == glue.COLUMNS
            assert frame["example_id"].is_unique
            assert frame["text_b"].isna().all() == (len(task.texts) == 1)
            if task.labels:
                assert set(frame["label"]) == set(range(task.outputs))


@pytest.mark.parametrize("task", REAL)
def test_real_tasks_have_their_official_counts_and_labels(shared_data, task):
    counts = []
    for split in TASKS[task].splits:
        examples = glue.read_original(shared_data, TASKS[task], split)
        assert examples.dropped == 0
        frame = examples.frame
        counts.append(len(frame))
        assert (frame["text_a"].str.strip() != "").all()
        if task == "stsb":
            assert (frame["label"].min(), frame["label"].max()) == (0.0, 5.0)
        else:
            assert set(frame["label"]) == set(range(TASKS[task].outputs))
    assert counts == REAL[task]


def test_both_layouts_are_accepted_and_whole_files_go_first(tmp_path):
    write(tmp_path, "SST-2/train.subset.tsv", "sentence\tlabel", "a\t1")
    assert read(tmp_path, "sst2").subset
    write(tmp_path, "SST-2/train.tsv", "sentence\tlabel", "a\t1", "b\t0")
    assert read(tmp_path, "sst2").source == "train.tsv"
    write(tmp_path, "glue/SST-2/train.subset.tsv", "sentence\tlabel", "a\t1", "b\t0", "c\t0")
    assert len(read(tmp_path, "sst2").frame) == 3


def test_a_text_is_as_it_stands_and_a_byte_order_mark_and_blank_last_lines_are_none(tmp_path):
    lines = ["\ufeffsentence\tlabel\r", '"never closed\t1\r', "a\u2028b \u0085c\x0bd\t0\r", "NA\t1", " \t0"]
    write(tmp_path, "SST-2/train.tsv", *lines, "", " ", "")
    frame = read(tmp_path, "sst2").frame
    assert frame["text_a"].tolist() == ['"never closed', "a\u2028b \u0085c\x0bd", "NA", " "]
    assert frame["label"].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CR LF", "CR"])
def test_a_file_may_have_the_line_ends_of_any_system(tmp_path, end):
    path = write_file(tmp_path / "SST-2/train.tsv", end.join(["sentence\tlabel", "a b\t1", "c\t0", ""]))
    assert read(tmp_path, "sst2").frame[["text_a", "label"]].values.tolist() == [["a b", 1], ["c", 0]]
    path.write_bytes(path.read_bytes() + f"d\t2{end}".encode())
    with pytest.raises(ValueError, match="line 4: label '2'"):
        read(tmp_path, "sst2")


@pytest.mark.parametrize(
    ("task", "lines", "message"),
    [
        ("sst2", ["sentence\tlabel", "a\t1", "b"], r"train\.tsv, line 3: 1 columns, expected 2 \(\['sentence', "),
        ("sst2", ["sentence,label", "a,1"], r"line 1: no column sentence, label among \['sentence,label'\]"),
        ("sst2", ["sentence\tlabel"], r"train\.tsv: no example"),
        ("sst2", ["sentence\tlabel", "\udce9\t1"], r"train\.tsv, line 2: not UTF-8"),
        ("cola", ["gj04\t1\t\tA.", "gj04\t0\tA."], r"line 2: 3 columns, expected 4"),
        ("rte", ["index\tsentence1\tsentence2\tlabel", "0\ta\tb\tneutral"], r"'neutral', allowed: entailment"),
        ("stsb", ["sentence1\tsentence2\tscore", "a\tb\t5.1"], r"line 2: label '5\.1', allowed: a number from 0 to 5"),
        # saved again by spreadsheets, which quote all cells, or cells with a mark
        ("sst2", ['"sentence"\t"label"', '"a"\t1', '"b"\t"0"'], r"train\.tsv: 5 cells are in quotation marks"),
        ("sst2", ["sentence\tlabel", '"a"\t1', '"b"\t0'], r"train\.tsv: 2 cells are in quotation marks"),
        ("sst2", ["sentence\tlabel", '"so ""good"" a film"\t1', "b\t0"], r"train\.tsv: 1 cells .* without quoting"),
    ],
)
def test_a_fault_is_named_with_its_file_and_line(tmp_path, task, lines, message):
    write(tmp_path, f"{TASKS[task].folder}/train.tsv", *lines)
    with pytest.raises(ValueError, match=message):
        read(tmp_path, task)


def test_the_corrupt_rows_of_qqp_are_left_out_and_counted(tmp_path):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
    good = "1\t2\t3\ta?\tb?\t1"
    write(tmp_path, "QQP/train.tsv", header, good, "1\t2\tcut", good)
    examples = read(tmp_path, "qqp")
    assert (examples.frame["example_id"].tolist(), examples.dropped) == (["0", "2"], 1)
    write(tmp_path, "QQP/train.tsv", header, good, *["cut"] * 51)
    with pytest.raises(ValueError, match="line 53: 1 columns"):
        read(tmp_path, "qqp")


def test_examples_of_mnli_without_a_gold_label_are_left_out_and_counted(tmp_path):
    header = "gold_label\tsentence1_binary_parse\tsentence1\tsentence2\tpairID"
    rows = ["neutral\t( a )\ta\tb\t1n", "-\t( a )\ta\tc\t2n", "entailment\t( a )\ta\td\t3e", "-\t( b )\tb\te\t4c"]
    write(tmp_path, "MNLI/dev_matched.tsv", header, *rows)
    examples = read(tmp_path, "mnli", 1)
    assert examples.frame["example_id"].tolist() == ["0", "2"]
    assert (examples.dropped, examples.reason) == (2, "no gold label")
    write(tmp_path, "MNLI/dev_matched.tsv", header, *rows[1::2])
    with pytest.raises(ValueError, match=r"dev_matched\.tsv: no example is left after 2 dropped rows"):
        read(tmp_path, "mnli", 1)
    write(tmp_path, "QNLI/train.tsv", "question\tsentence\tlabel", "a\tb\t-")
    with pytest.raises(ValueError, match=r"line 2: label '-', allowed: entailment, not_entailment"):
        read(tmp_path, "qnli")


@pytest.mark.parametrize("missing", [-1, None])
@pytest.mark.parametrize("task", ["rte", "stsb"])
def test_rows_of_the_hub_without_a_label_are_left_out_and_counted(tmp_path, task, missing):
    rows = [{"sentence1": "a", "sentence2": "b", "label": label} for label in (missing, 1, 0)]
    examples = read_hub(make_hub(tmp_path / "glue", rows, task), task)
    assert examples.frame[["example_id", "label"]].values.tolist() == [["1", 1], ["2", 0]]
    assert (examples.dropped, examples.reason) == (1, "no gold label")
    with pytest.raises(ValueError, match="no example has a label"):
        read_hub(make_hub(tmp_path / "none", rows[:1] * 2, task), task)


@pytest.mark.parametrize(("size", "count"), [(40, 7), (7, 40), (7, None)])
def test_a_sample_is_seeded_and_in_the_order_of_the_file(size, count):
    examples = Examples(pd.DataFrame({"example_id": range(size)}), "toy")
    taken, again, other = (examples.sample(count, [seed])["example_id"].tolist() for seed in (3, 3, 4))
    assert taken == sorted(set(taken))
    assert len(taken) == 7
    assert again == taken
    assert (other != taken) == (size > 7)


def test_every_split_of_every_task_is_drawn_from_a_separate_seed(tmp_path, monkeypatch):
    seeds = []
    monkeypatch.setattr(Examples, "sample", lambda self, count, seed: seeds.append(tuple(seed)) or self.frame)
    tasks.build_tasks(tmp_path, make_settings(root=EMBEDDED, seed=3))
    assert len(set(seeds)) == len(seeds) == len(pd.read_csv(tmp_path / "statistics.csv"))
    assert {seed for seed, *_ in seeds} == {3}


def test_reduced_splits_are_marked(tmp_path):
    tasks.build_tasks(tmp_path, make_settings(root=EMBEDDED, names=["mrpc", "rte"], train=300, validation=400))
    statistics = read_statistics(tmp_path)
    assert statistics["examples"].tolist() == [300, 400, 300, 400]
    assert statistics["available"].tolist() == [2000, 400, 2000, 400]
    assert statistics["reduced"].tolist() == [True, False, True, False]


def test_a_dataset_in_the_layout_of_the_hub_gives_the_same_tables(tmp_path, shared_data):
    ours = read(shared_data, "rte", 1).frame
    text, label = datasets.Value("string"), datasets.ClassLabel(names=list(TASKS["rte"].classes))
    features = datasets.Features(sentence1=text, sentence2=text, label=label)
    rows = ours.rename(columns={"text_a": "sentence1", "text_b": "sentence2"})[list(features)].to_dict("records")
    theirs = read_hub(make_hub(tmp_path / "glue", rows, "rte", features), "rte").frame
    pd.testing.assert_frame_equal(theirs, ours)


def test_two_folders_of_one_name_and_layout_are_told_apart(tmp_path):
    """The cache of `datasets` identifies a folder by the last part of the path."""
    for text in ("first", "second"):
        repository = make_hub(tmp_path / text / "glue", [{"sentence1": text, "sentence2": "b", "label": 0}], "rte")
        frame = read_hub(repository, "rte").frame
        assert frame["text_a"].tolist() == [text]


def test_a_repository_without_a_column_of_the_task_is_one_error_that_names_both(tmp_path):
    repository = make_hub(tmp_path / "glue", [{"sentence1": "a", "text": "b", "label": 0}], "rte")
    with pytest.raises(ValueError, match=r"tasks\.hub: .* \(rte\): no column sentence2 among \['sentence1', 'text'"):
        read_hub(repository, "rte")


@pytest.mark.parametrize("word", ["null", "NA", "None"])
def test_a_text_that_datasets_reads_from_csv_as_missing_is_one_clear_error(tmp_path, word):
    folder = tmp_path / "glue" / "rte"
    repository = make_hub(folder.parent, [{"sentence1": "a"}], "rte")
    [parquet] = folder.iterdir()
    parquet.unlink()
    (folder / "validation-0.csv").write_text(f"sentence1,sentence2,label\na,b,0\nc,{word},1\n")
    with pytest.raises(ValueError, match=r"glue, rte, validation, row 1: .* got `null`.* \(`datasets` reads"):
        read_hub(repository, "rte")


WRONG = [("rte", "entailment"), ("rte", 2), ("rte", 0.4), ("stsb", 6.5), ("stsb", -2.0), ("rte", 1)]


@pytest.mark.parametrize(("task", "label"), WRONG)
def test_rows_of_another_form_in_the_layout_of_the_hub_are_one_clear_error(task, label, tmp_path):
    second = 5 if label == 1 else "b"
    repository = make_hub(tmp_path / "glue", [{"sentence1": "a", "sentence2": second, "label": label}], task)
    with pytest.raises(ValueError, match=rf"glue, {task}, validation, row 0: .*{label}'?\): .*; name a repository"):
        read_hub(repository, task)


def test_the_hub_is_read_at_one_commit_which_the_statistics_name(monkeypatch):
    label = datasets.ClassLabel(names=["negative", "positive"])
    features = datasets.Features(sentence=datasets.Value("string"), label=label)
    revisions = []

    def load_dataset(repository, name, *, split, revision):
        revisions.append(revision)
        return datasets.Dataset.from_dict({"sentence": ["a"], "label": [0]}, features=features)

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: SimpleNamespace(sha="1234"))
    repository = HubRepository(repository="some/glue", revision="main")
    examples = glue.read_hub(repository, TASKS["sst2"], TASKS["sst2"].splits[0])
    assert examples.source == "some/glue@1234"
    assert revisions == ["1234"]


def test_metrics_of_a_known_confusion():
    labels = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    predictions = np.array([1, 1, 0, 1, 0, 0, 0, 0])  # 2 true, 1 false, 1 missed positive; 4 true negatives
    expected = {"accuracy": 6 / 8, "f1": 2 * 2 / (2 * 2 + 1 + 1)}
    assert compute_metrics("mrpc", predictions, labels) == pytest.approx(expected)
    assert compute_metrics("qqp", predictions, labels) == compute_metrics("mrpc", predictions, labels)
    matthews = (2 * 4 - 1 * 1) / np.sqrt(3 * 3 * 5 * 5)
    assert compute_metrics("cola", predictions, labels) == pytest.approx({"matthews_correlation": matthews})
    for task in ("sst2", "mnli", "qnli", "rte"):
        assert compute_metrics(task, predictions, labels) == {"accuracy": 0.75}


@hypothesis.settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=3, max_size=30))
def test_correlations_are_those_of_their_definitions(values):
    labels = np.array(values) / 10
    predictions = labels**3 - 7
    found = compute_metrics("stsb", predictions, labels)
    if np.ptp(labels) == 0:
        assert found == {"pearson": 0.0, "spearmanr": 0.0}
    else:
        pearson = np.corrcoef(predictions, labels)[0, 1]
        assert found == pytest.approx({"pearson": pearson, "spearmanr": 1.0})


def test_one_answer_to_everything_has_a_defined_score():
    labels = np.array([0, 1, 1, 0])
    assert compute_metrics("cola", np.zeros(4, int), labels) == {"matthews_correlation": 0.0}
    assert compute_metrics("mrpc", np.zeros(4, int), labels) == {"accuracy": 0.5, "f1": 0.0}
    assert compute_metrics("stsb", np.full(4, 2.5), labels / 3) == {"pearson": 0.0, "spearmanr": 0.0}


@pytest.mark.parametrize(
    ("task", "predictions", "labels", "message"),
    [
        ("cola", [1, 0], [1], r"predictions \(2,\) and labels \(1,\)"),
        ("cola", [[0.1, 0.9]], [[1, 0]], "must be"),
        ("stsb", [1.0, float("nan")], [1.0, 2.0], "NaN or infinity"),
    ],
)
def test_predictions_that_cannot_be_scored_are_refused(task, predictions, labels, message):
    with pytest.raises(ValueError, match=message):
        compute_metrics(task, np.array(predictions), np.array(labels))
