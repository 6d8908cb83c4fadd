"""Windows over contexts, answer spans, and fine-tuning on questions, from a toy model to the stage."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from tokenizers import Tokenizer

from stages.__main__ import main as run_stage
from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import make_configuration
from stages.benchmarks.answers import compute_scores
from stages.files import observations
from stages.files.storage import compute_sha256
from stages.question_answering import spans as learning
from stages.question_answering import stage as question_answering
from stages.question_answering.windows import Window, cut_context, encode_questions, find_token_span, pad_windows
from stages.schema.settings import load_settings
from stages.schema.training_sections import QuestionAnswering
from stages.tokenization.vocabulary import SPECIAL, make_tokenizer
from tests.places import ROOT
from tests.toy_settings import LAPTOP, edit_laptop

# a toy model is slower on two threads
pytestmark = pytest.mark.usefixtures("one_thread")

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
TOY = {"layers": 2, "hidden": 48, "heads": 4, "intermediate": 192, "positions": 64}
RECIPE = load_settings(LAPTOP).question_answering
OWN_TRAINING = {
    "tasks": ("squad2",),
    "epochs": 1,
    "batch_size": 8,
    "learning_rates": (3e-3, 1e-3),
    "maximum_length": 64,
}


@pytest.fixture
def tokenizer(tmp_path) -> Path:
    """Pieces of one sign, and a few whole words."""
    words = ["seine", "paris", "flows", "through", "the", "is", "old", "where", "river", "?", ".", ",", "##s"]
    pieces = [*SPECIAL, *words, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    path = tmp_path / "tokenizer.json"
    make_tokenizer({piece: number for number, piece in enumerate(pieces)}).save(str(path))
    return path


def write_table(path: Path, *rows: tuple[str, str, str | None]) -> Path:
    """Writes questions: (context, question, answer, or None for an unanswerable question)."""
    entries = []
    for number, (context, question, answer) in enumerate(rows):
        answers = [answer] if answer else []
        starts = [context.index(text) for text in answers]
        entries.append((str(number), context, question, answers, starts))
    frame = pd.DataFrame(entries, columns=["example_id", "context", "question", "answers", "starts"])
    frame.to_parquet(path)
    return path


def read_spans(path: Path, windows: list[Window]) -> list[tuple[int, str]]:
    """Reads (question, text of the answer) of every window with an answer."""
    contexts = pd.read_parquet(path)["context"]
    found = []
    for window in windows:
        first = window.span[0] - window.begin
        last = window.span[1] - window.begin
        # The span of a window without the answer is [CLS], before the context.
        if first >= 0:
            start, end = window.offsets[first, 0], window.offsets[last, 1]
            found.append((window.question, contexts[window.question][start:end]))
    return found


# windows


@pytest.mark.parametrize(("tokens", "room", "stride"), [(0, 5, 3), (5, 5, 3), (6, 5, 5), (50, 7, 1)])
def test_windows_cover_every_token_and_stop_at_the_last(tokens, room, stride):
    covered = set()
    found = list(cut_context(tokens, room, stride))
    for number, (start, end) in enumerate(found):
        assert start == number * stride
        assert end - start <= room
        assert (end == tokens) == (number == len(found) - 1)
        covered.update(range(start, end))
    assert covered == set(range(tokens))


def test_a_window_is_cls_question_sep_context_sep(tmp_path, tokenizer):
    path = write_table(tmp_path / "train.parquet", ("The Séine flows.", "Where is the river?", "Séine"))
    [window] = encode_questions(path, tokenizer, make_recipe())
    words = Tokenizer.from_file(str(tokenizer))
    pair = words.encode("Where is the river?", "The Séine flows.")
    assert " ".join(pair.tokens) == "[CLS] where is the river ? [SEP] the seine flows . [SEP]"
    [ids], [types], _, [context] = pad_windows([window], 12)
    assert ids.tolist() == pair.ids
    assert types.tolist() == pair.type_ids
    assert context.nonzero().flatten().tolist() == [7, 8, 9, 10]
    assert (window.begin, window.span) == (7, (8, 8))
    assert read_spans(path, [window]) == [(0, "Séine")]


def test_a_question_is_cut_and_every_token_of_a_long_context_is_in_a_window_with_its_own_place(tmp_path, tokenizer):
    context = " ".join(f"w{number}" for number in range(40))
    path = write_table(tmp_path / "train.parquet", (context, "river " * 30, "w17"))
    windows = encode_questions(path, tokenizer, make_recipe(maximum_length=24, question_length=10, stride=8))
    seen = set()
    for window in windows:
        assert len(window.ids) <= 24
        assert window.begin == 12
        seen.update(map(tuple, window.offsets.tolist()))
    whole = Tokenizer.from_file(str(tokenizer)).encode(context, add_special_tokens=False)
    assert seen == set(whole.offsets)
    assert set(read_spans(path, windows)) == {(0, "w17")}


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (4, 8, (1, 1)),
        (0, 9, (0, 2)),
        # The answer begins and ends within tokens.
        (5, 11, (1, 3)),
        # White space has no token.
        (3, 4, None),
    ],
)
def test_the_tokens_of_an_answer_are_those_that_reach_into_it(start, end, expected):
    places = np.array([[0, 3], [4, 8], [8, 9], [10, 12]])
    assert find_token_span(places, start, end) == expected
    assert find_token_span(places[:0], start, end) is None


# prediction


def search_best_span(starts: torch.Tensor, ends: torch.Tensor, longest: int) -> tuple[float, int, int]:
    """Searches all spans between the places of these scores."""
    sums = {}
    for first in range(len(starts)):
        for last in range(first, min(first + longest, len(ends))):
            sums[first, last] = float(starts[first] + ends[last])
    best = max(sums, key=sums.get)
    return sums[best], *best


@pytest.mark.parametrize("longest", [1, 3])
def test_the_best_span_is_the_result_of_a_search_through_all_spans(longest):
    starts, ends = torch.randn(2, 6, 12, generator=torch.Generator().manual_seed(longest))
    allowed = torch.zeros(6, 12, dtype=torch.bool)
    for row in range(6):
        allowed[row, 4 : 5 + row] = True
    found = learning.find_best_span(starts, ends, allowed, longest)
    for row, (value, first, last) in enumerate(zip(*found, strict=True)):
        place = slice(4, 5 + row)
        expected = search_best_span(starts[row, place], ends[row, place], longest)
        assert (float(value), first - 4, last - 4) == pytest.approx(expected)


def score_question_highest(model: torch.nn.Module, ids, attention_mask, token_type_ids) -> SimpleNamespace:
    """Scores the question highest, and within a text the last token."""
    score = 10.0 * (1 - token_type_ids) + torch.arange(ids.shape[1]) / 100
    return SimpleNamespace(start_logits=score, end_logits=score)


def test_a_prediction_never_reaches_into_the_question(tmp_path, tokenizer, monkeypatch):
    path = write_table(tmp_path / "train.parquet", ("Paris is old.", "where is the river?", "Paris"))
    windows = encode_questions(path, tokenizer, make_recipe())
    monkeypatch.setattr(torch.nn.Identity, "forward", score_question_highest)
    best = learning.score_windows(torch.nn.Identity(), windows, make_recipe())
    assert learning.choose_answers(pd.Series(["Paris is old."]), windows, best, np.inf) == ["."]


@pytest.mark.parametrize(
    ("threshold", "answers"),
    [
        # Without a threshold, no question is left unanswered.
        (np.inf, ["two", "six ten"]),
        # The lowest null score of the first question, 3, exceeds its best answer by 1.
        (0.0, ["", "six ten"]),
        (1.0, ["two", "six ten"]),
        (-9.0, ["", ""]),
    ],
)
def test_the_best_window_answers_and_the_lowest_null_score_decides(threshold, answers):
    places = np.array([[0, 3], [4, 7]])
    windows = [Window(np.zeros(4), 0, places, question, (0, 0)) for question in (0, 0, 1)]
    contexts = pd.Series(["one two", "six ten"])
    best = [
        learning.Span(1.0, 0, 0, 9.0),
        learning.Span(2.0, 1, 1, 3.0),
        learning.Span(5.0, 0, 1, 1.0),
    ]
    assert learning.choose_answers(contexts, windows, best, threshold) == answers


# training


def make_recipe(**changes) -> QuestionAnswering:
    return RECIPE.model_copy(update=OWN_TRAINING | changes)


def make_run(weights: Path, seed: int = 1, **changes) -> question_answering.AnsweringRun:
    return question_answering.AnsweringRun(
        task="squad2",
        set="squad2",
        weights=str(weights),
        columns={},
        pretraining_seed=1,
        seed=seed,
        training=make_recipe(**changes),
    )


def pretrain(folder: Path, tokenizer: Path, operator: str = "original") -> Path:
    torch.manual_seed(0)
    size = Tokenizer.from_file(str(tokenizer)).get_vocab_size()
    config = make_configuration(operator, **TOY, vocab_size=size, initializer_range=0.1)
    OperatorBertForMaskedLM(config).save_pretrained(folder)
    return folder


def draw_questions(count: int, seed: int) -> list[tuple[str, str, str | None]]:
    """Draws contexts of a letter and a digit and asks for either; the context lacks every third asked sign."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        letters = generator.permutation(list("bcdefghk"))
        digits = generator.permutation(list("12345678"))
        if number % 2:
            question, wanted, others = "river?", letters, digits
        else:
            question, wanted, others = "old?", digits, letters
        if number % 3:
            answer, context = str(wanted[0]), [others[0], wanted[0]]
        else:
            answer, context = None, others[:2]
        rows.append((" is ".join(generator.permutation(context)), question, answer))
    return rows


@pytest.mark.nightly
@pytest.mark.parametrize("operator", ["original", "shared"])
def test_a_toy_model_learns_when_to_answer_and_the_right_answer(tmp_path, tokenizer, operator):
    train = write_table(tmp_path / "train.parquet", *draw_questions(300, 1))
    validation = write_table(tmp_path / "validation.parquet", *draw_questions(60, 2))
    weights = pretrain(tmp_path / "model", tokenizer, operator)
    run = make_run(weights, epochs=10, hidden_dropout=0.0, attention_dropout=0.0)
    model, _ = learning.train_on_questions(run, tokenizer, train)
    gold = pd.read_parquet(validation)["answers"]
    found = learning.answer_questions(model, validation, tokenizer, make_recipe(), unanswerable=True)
    # No answer to any question scores 1/3.
    assert compute_scores(found, gold)["exact_match"] > 0.8
    strict = make_recipe(null_threshold=-1000.0)
    assert set(learning.answer_questions(model, validation, tokenizer, strict, unanswerable=True)) == {""}


def test_the_loss_is_the_librarys(tmp_path, tokenizer, monkeypatch):
    table = write_table(tmp_path / "train.parquet", ("Paris is old.", "old?", "Paris"))
    [window] = encode_questions(table, tokenizer, make_recipe())
    losses = []

    def compare(model, lengths, run, loss_of) -> None:
        ids, types, mask, _ = pad_windows([window], len(window.ids))
        first, last = torch.tensor([window.span]).T
        theirs = model.eval()(ids, mask, types, start_positions=first, end_positions=last)
        losses.extend([loss_of(np.array([0])), theirs.loss])

    monkeypatch.setattr(learning, "train_epochs", compare)
    learning.train_on_questions(make_run(pretrain(tmp_path / "model", tokenizer)), tokenizer, table)
    torch.testing.assert_close(*losses)


def test_equal_seeds_give_equal_bytes_and_other_seeds_do_not(tmp_path, tokenizer):
    train = write_table(tmp_path / "train.parquet", *draw_questions(40, 1))
    weights = pretrain(tmp_path / "model", tokenizer)
    digests = []
    for seed in (1, 1, 2):
        learning.train_on_questions(make_run(weights, seed, hidden_dropout=0.1), tokenizer, train, tmp_path / "kept")
        digests.append(compute_sha256(tmp_path / "kept/model.safetensors"))
    assert digests[0] == digests[1] != digests[2]


def test_padding_changes_no_score_and_a_context_without_tokens_is_left_unanswered(tmp_path, tokenizer):
    [first, *others] = draw_questions(4, 1)
    alone = write_table(tmp_path / "alone.parquet", first)
    together = write_table(tmp_path / "train.parquet", first, *others, ("the " * 20, "1?", None), (" ", "1?", None))
    model, _ = learning.train_on_questions(make_run(pretrain(tmp_path / "model", tokenizer)), tokenizer, together)
    found = []
    for path in (alone, together):
        windows = encode_questions(path, tokenizer, make_recipe())
        best = learning.score_windows(model, windows, make_recipe())[0]
        found.append((best.score, best.null))
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    answers = learning.answer_questions(model, together, tokenizer, make_recipe(), unanswerable=False)
    assert [answer == "" for answer in answers] == [False] * 5 + [True]


# the stage


@pytest.fixture
def prepared(in_an_empty_folder, tokenizer) -> None:
    """A folder in which the stage runs: pre-trained models of two seeds, questions, parameters."""
    Path("stages").symlink_to(ROOT / "stages")
    params = edit_laptop(
        {
            "workers": 1,
            "operators": ["original"],
            "pretraining.seeds": [1, 2],
            "question_answering.epochs": 1,
            "question_answering.tasks": ["squad2", "squad2_triviaqa"],
        }
    )
    Path("params.yaml").write_text(yaml.safe_dump(params))
    for name in ("squad2", "triviaqa"):
        folder = Path("data/tasks", name)
        folder.mkdir(parents=True)
        write_table(folder / "train.parquet", *draw_questions(24, 1))
        write_table(folder / "validation.parquet", *draw_questions(12, 2))
    Path("data/tokens/tokenizer").mkdir(parents=True)
    tokenizer.rename(question_answering.TOKENIZER)
    for seed in (1, 2):
        pretrain(Path(f"data/pretraining/original-tiny/seed-{seed}"), question_answering.TOKENIZER)
    Path("data/runs").mkdir()
    for stage in ("pretraining", "tasks"):
        Path(f"data/runs/{stage}.json").write_text("{}")


def test_the_stage_measures_every_task_and_trains_on_triviaqa_once_a_pair_of_seeds(prepared, capsys):
    path = Path("data/observations/question_answering.csv")
    run_stage(["question_answering"])
    assert "6 jobs, 2 of them done before" in capsys.readouterr().out
    rows = observations.read([path])
    keys = ["task", "metric", "pretraining_seed"]
    assert len(rows) == len(rows[keys].drop_duplicates()) == 2 * 2 * 2
    assert rows["task"].drop_duplicates().tolist() == ["squad2", "squad2_triviaqa"]
    assert set(rows["evaluated_on"]) == {"squad2"}
    assert set(rows["n"]) == {12}
    saved = pd.read_parquet("data/answers/original-tiny.parquet")
    assert len(saved) == 2 * 2 * 12
    # The observations are the scores of the saved answers.
    asked = "task == 'squad2_triviaqa' and pretraining_seed == 2"
    gold = pd.read_parquet("data/tasks/squad2/validation.parquet")["answers"]
    expected = compute_scores(saved.query(asked)["prediction"].tolist(), gold.tolist())
    assert rows.query(asked).set_index("metric")["value"].to_dict() == pytest.approx(expected)
    # A second run computes nothing and gives the same bytes.
    first = path.read_bytes()
    path.unlink()
    run_stage(["question_answering"])
    assert "6 jobs, 6 of them done before" in capsys.readouterr().out
    assert path.read_bytes() == first


def test_only_questions_of_squad_2_may_be_left_unanswered(tmp_path, monkeypatch):
    allowed = []
    monkeypatch.setattr(learning, "train_on_questions", lambda *_: (None, 0.0))
    monkeypatch.setattr(learning, "answer_questions", lambda *_, unanswerable: allowed.append(unanswerable) or [])
    for name in ("squad1", "squad2"):
        question_answering.finetune(make_run(tmp_path).model_copy(update={"set": name}), tmp_path)
    assert allowed == [False, True]


def test_runs_after_triviaqa_start_from_the_model_of_their_seeds():
    settings = load_settings()
    models = [("original", "tiny")]
    trained = {}
    for run in question_answering.plan_runs(settings, models, ["triviaqa"], {}):
        trained[run.weights, run.seed] = Path(f"after-{run.pretraining_seed}")
    for run in question_answering.plan_runs(settings, models, settings.question_answering.tasks, trained):
        start = "after" if run.task.endswith("_triviaqa") else "data/pretraining/original-tiny/seed"
        assert run.weights == f"{start}-{run.pretraining_seed}"
