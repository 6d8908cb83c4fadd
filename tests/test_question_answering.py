"""Windows over contexts, answer spans, and fine-tuning on questions, from a toy model to the stage."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from tokenizers import Tokenizer

from stages.__main__ import main as run_stage
from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import configuration
from stages.benchmarks.answers import scores
from stages.embedded.comprehension import write_squad
from stages.files import observations
from stages.files.storage import sha256
from stages.question_answering import spans as learning
from stages.question_answering import stage as question_answering
from stages.question_answering.windows import Window, cuts, encode, pad_windows, token_span
from stages.schema.settings import load_settings
from stages.schema.training_sections import QuestionAnswering
from stages.tasks import squad
from stages.tokenization.vocabulary import SPECIAL, word_pieces

ROOT = Path(__file__).parents[1]
MODELS = [("original", "tiny")]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
TOY = {"layers": 2, "hidden": 48, "heads": 4, "intermediate": 192, "positions": 64}
TRAINING = {
    "seeds": [1], "tasks": ["squad2"],
    "epochs": 1, "batch_size": 8, "learning_rates": [3e-3, 1e-3], "schedule": "steps", "warmup_share": 0.1,
    "betas": [0.9, 0.999], "epsilon": 1e-8, "weight_decay": 0.01, "gradient_clipping": 1.0, "hidden_dropout": 0.1,
    "attention_dropout": 0.1, "precision": "float32", "maximum_length": 64, "question_length": 20, "stride": 24,
    "answer_length": 10, "null_threshold": 0.0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    """A job computes on one thread, and a toy model is slower on two."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def tokenizer(tmp_path) -> Path:
    """Pieces of one sign, and a few whole words."""
    words = ["seine", "paris", "flows", "through", "the", "is", "old", "where", "river", "?", ".", ",", "##s"]
    pieces = [*SPECIAL, *words, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    path = tmp_path / "tokenizer.json"
    word_pieces({piece: number for number, piece in enumerate(pieces)}).save(str(path))
    return path


def table(folder: Path, *rows: tuple, name="train.parquet") -> Path:
    """rows: (context, question, answer or None)."""
    frame = pd.DataFrame(
        {
            "example_id": [str(i) for i in range(len(rows))],
            "context": [row[0] for row in rows],
            "question": [row[1] for row in rows],
            "answers": [[row[2]] if row[2] else [] for row in rows],
            "starts": [[row[0].index(row[2])] if row[2] else [] for row in rows],
        }
    )
    folder.mkdir(exist_ok=True)
    frame.to_parquet(folder / name)
    return folder / name


def texts_of_spans(path: Path, windows: list[Window]) -> list[tuple[int, str]]:
    """(question, text) of every window that holds its answer."""
    contexts = pd.read_parquet(path)["context"]
    found = []
    for window in windows:
        first, last = (token - window.begin for token in window.span)
        if first >= 0:
            text = contexts[window.question][window.offsets[first, 0] : window.offsets[last, 1]]
            found.append((window.question, text))
    return found


# windows


@pytest.mark.parametrize(
    ("tokens", "room", "stride"), [(0, 5, 3), (5, 5, 3), (6, 5, 3), (6, 5, 5), (50, 7, 1), (11, 5, 3)]
)
def test_windows_cover_every_token_and_stop_at_the_last(tokens, room, stride):
    found = list(cuts(tokens, room, stride))
    assert set().union(*(range(*cut) for cut in found)) == set(range(tokens))
    assert all(end - start <= room for start, end in found)
    assert [start for start, _ in found] == [i * stride for i in range(len(found))]
    assert found[-1][1] == tokens and all(end < tokens for _, end in found[:-1])


def test_a_window_is_cls_question_sep_context_sep(tmp_path, tokenizer):
    path = table(tmp_path, ("The Seine flows.", "Where is the river?", "Seine"))
    windows = encode(path, tokenizer, 64, 20, 24)
    words = Tokenizer.from_file(str(tokenizer))
    tokens = [words.id_to_token(i) for i in windows[0].ids]
    assert " ".join(tokens) == "[CLS] where is the river ? [SEP] the seine flows . [SEP]"
    pair = words.encode("Where is the river?", "The Seine flows.")
    [ids], [types], _, [context] = pad_windows(windows, 12)
    assert (ids.tolist(), types.tolist()) == (pair.ids, pair.type_ids)
    assert context.tolist() == [7 <= place < 11 for place in range(12)]
    assert [(window.begin, window.span) for window in windows] == [(7, (8, 8))]


def test_long_questions_are_cut_at_the_stated_length_and_shorter_ones_never(tmp_path, tokenizer):
    path = table(tmp_path, ("Paris is old.", "river " * 30, "Paris"), ("Paris is old.", "river " * 9, "Paris"))
    windows = encode(path, tokenizer, 24, 10, 5)
    assert [window.begin for window in windows] == [12, 11]


def test_every_token_of_a_long_context_is_in_a_window_with_its_own_place(tmp_path, tokenizer):
    context = " ".join(f"w{i}" for i in range(40))  # three pieces each, some two
    path = table(tmp_path, (context, "where?", "w17"))
    windows = encode(path, tokenizer, 24, 10, 8)
    seen = {tuple(place) for window in windows for place in window.offsets.tolist()}
    whole = Tokenizer.from_file(str(tokenizer)).encode(context, add_special_tokens=False)
    assert seen == set(whole.offsets)
    assert all(len(window.ids) <= 24 for window in windows) and len(windows) > 5
    spans = texts_of_spans(path, windows)
    assert spans and set(spans) == {(0, "w17")}
    begin = context.index("w17")
    for window in windows:
        if window.span == (0, 0):
            assert window.offsets[0, 0] > begin or window.offsets[-1, 1] < begin + 3


def test_the_tokens_of_an_answer_are_those_that_reach_into_it():
    places = np.array([[0, 3], [4, 8], [8, 9], [10, 12]])
    assert token_span(places, 4, 8) == (1, 1)
    assert token_span(places, 0, 9) == (0, 2)
    assert token_span(places, 5, 11) == (1, 3)  # an answer that begins and ends within tokens
    assert token_span(places, 3, 4) is None  # white space
    assert token_span(np.empty((0, 2), int), 0, 3) is None


def test_accents_and_other_scripts_keep_their_place_in_the_text(tmp_path, tokenizer):
    path = table(tmp_path, ("Élan — 😀 the Séine is old.", "where?", "Séine"), ("Paris", "where?", "Paris"))
    assert texts_of_spans(path, encode(path, tokenizer, 64, 20, 24)) == [(0, "Séine"), (1, "Paris")]


def test_embedded_answers_are_the_texts_of_their_spans(tmp_path, tokenizer):
    write_squad(tmp_path, 80, 40, 1)
    for name in squad.VERSIONS:
        frame = squad.read_original(tmp_path, name, "train").frame
        path = tmp_path / f"{name}.parquet"
        frame.to_parquet(path)
        spans = dict(texts_of_spans(path, encode(path, tokenizer, 256, 60, 64)))
        assert spans == {i: answers[0] for i, answers in enumerate(frame["answers"]) if answers}


# prediction


def brute(starts, ends, allowed, longest):
    best = (-np.inf, 0, 0)
    for first in range(len(starts)):
        for last in range(first, min(first + longest, len(starts))):
            if allowed[first] and allowed[last]:
                best = max(best, (float(starts[first] + ends[last]), -first, -last))
    return best[0], -best[1], -best[2]


@pytest.mark.parametrize("longest", [1, 3, 30])
def test_the_best_span_is_that_of_a_search_through_all(longest):
    generator = torch.Generator().manual_seed(longest)
    starts, ends = torch.randn(2, 20, 12, generator=generator)
    allowed = torch.zeros(20, 12, dtype=torch.bool)
    for row in range(20):
        allowed[row, 4 : 5 + row % 7] = True
    value, first, last = learning.find_best_span(starts, ends, allowed, longest)
    for row in range(20):
        expected = brute(starts[row], ends[row], allowed[row], longest)
        assert (float(value[row]), int(first[row]), int(last[row])) == pytest.approx(expected)
        assert 4 <= first[row] <= last[row] < first[row] + longest and allowed[row, last[row]]


def test_a_prediction_never_reaches_into_the_question(tmp_path, tokenizer):
    path = table(tmp_path, ("Paris is old.", "where is the river?", "Paris"))
    windows = encode(path, tokenizer, 64, 20, 24)

    class Asker(torch.nn.Module):  # likes the question best, and the closing [SEP]
        def forward(self, ids, attention_mask, token_type_ids):
            score = 10.0 * (1 - token_type_ids) + torch.arange(ids.shape[1]) / 100
            return type("Given", (), {"start_logits": score, "end_logits": score})

    best = learning.score_windows(Asker().eval(), windows, 10, "float32")
    assert learning.choose_answers(pd.Series(["Paris is old."]), windows, best, None) == ["."]


def test_the_best_window_answers_and_the_lowest_null_score_decides():
    places = np.array([[0, 3], [4, 7]])
    windows = [Window(np.zeros(4), 0, places, question, (0, 0)) for question in (0, 0, 1)]
    contexts = pd.Series(["one two", "six ten"])
    best = [learning.Span(1.0, 0, 0, 9.0), learning.Span(2.0, 1, 1, 3.0), learning.Span(5.0, 0, 1, 1.0)]
    assert learning.choose_answers(contexts, windows, best, None) == ["two", "six ten"]  # never unanswered
    assert learning.choose_answers(contexts, windows, best, 0.0) == ["", "six ten"]  # 3 - 2 > 0
    assert learning.choose_answers(contexts, windows, best, 1.0) == ["two", "six ten"]  # not more than 1
    assert learning.choose_answers(contexts, windows, best, -9.0) == ["", ""]


def test_a_context_without_tokens_is_left_unanswered(tmp_path, tokenizer):
    path = table(tmp_path, (" ", "where?", None), ("Paris", "where?", "Paris"))
    windows = encode(path, tokenizer, 64, 20, 24)
    model = pretrained(tmp_path / "model", tokenizer)
    model, _ = learning.train(run_of(tmp_path / "model"), tokenizer, path)
    assert len(windows) == 2
    assert learning.answer(model, path, tokenizer, recipe(), unanswerable=False) == ["", "Paris"]


# training


def recipe(**changes) -> QuestionAnswering:
    return QuestionAnswering.model_validate(TRAINING | changes)


def run_of(weights: Path, seed: int = 1, **changes) -> question_answering.AnsweringRun:
    own = {"task": "squad2", "set": "squad2", "weights": str(weights), "columns": {}}
    return question_answering.AnsweringRun(**own, pretraining_seed=1, seed=seed, training=recipe(**changes))


def pretrained(folder: Path, tokenizer: Path, operator: str = "original") -> Path:
    torch.manual_seed(0)
    size = Tokenizer.from_file(str(tokenizer)).get_vocab_size()
    config = configuration(operator, **TOY, vocab_size=size, initializer_range=0.1)
    OperatorBertForMaskedLM(config).save_pretrained(folder)
    return folder


def signs(count: int, seed: int) -> list[tuple]:
    """A letter and a digit, of which one is asked for; one question in three asks for what the context has not."""
    generator = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        letters, digits = generator.permutation(list("bcdefghk"))[:2], generator.permutation(list("12345678"))[:2]
        (question, wanted), (_, other) = [("river?", letters), ("old?", digits)][:: 1 if i % 2 else -1]
        context = [other[0], other[1] if i % 3 == 0 else wanted[0]]
        answer = None if i % 3 == 0 else str(wanted[0])
        rows.append((" is ".join(generator.permutation(context)), str(question), answer))
    return rows


@pytest.mark.parametrize("operator", ["original", "shared"])
def test_a_toy_model_learns_what_to_answer_and_when_not_to(tmp_path, tokenizer, operator):
    train = table(tmp_path, *signs(300, 1))
    validation = table(tmp_path, *signs(60, 2), name="validation.parquet")
    weights = pretrained(tmp_path / "model", tokenizer, operator)
    run = run_of(weights, epochs=10, hidden_dropout=0.0, attention_dropout=0.0)
    model, _ = learning.train(run, tokenizer, train)
    gold = pd.read_parquet(validation)["answers"]
    found = learning.answer(model, validation, tokenizer, recipe(), unanswerable=True)
    assert scores(found, gold)["exact_match"] > 0.8  # always answering nothing: 1/3
    assert "" not in learning.answer(model, validation, tokenizer, recipe(), unanswerable=False)
    strict = recipe(null_threshold=-1000.0)
    assert set(learning.answer(model, validation, tokenizer, strict, unanswerable=True)) == {""}


def test_equal_seeds_give_equal_bytes_and_others_do_not(tmp_path, tokenizer):
    train = table(tmp_path, *signs(40, 1))
    weights = pretrained(tmp_path / "model", tokenizer)
    digests = []
    for seed in (1, 1, 2):
        learning.train(run_of(weights, seed), tokenizer, train, tmp_path / "kept")
        digests.append(sha256(tmp_path / "kept" / "model.safetensors"))
    assert digests[0] == digests[1] != digests[2]


def test_padding_changes_no_score(tmp_path, tokenizer):
    path = table(tmp_path, *signs(4, 1), ("the " * 20, "1?", None))
    model, _ = learning.train(run_of(pretrained(tmp_path / "model", tokenizer)), tokenizer, path)
    together = learning.score_windows(model, encode(path, tokenizer, 64, 20, 24), 10, "float32")
    alone = table(tmp_path, *signs(4, 1)[:1], name="alone.parquet")
    one = learning.score_windows(model, encode(alone, tokenizer, 64, 20, 24), 10, "float32")
    assert one[0].score == pytest.approx(together[0].score, abs=1e-4)
    assert one[0].null == pytest.approx(together[0].null, abs=1e-4)


# the stage


@pytest.fixture
def prepared(tmp_path, monkeypatch, tokenizer) -> Path:
    """A folder in which the stage runs: pre-trained models of two seeds, embedded questions, parameters."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stages").symlink_to(ROOT / "stages")
    params = yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
    params |= {"workers": 1, "operators": ["original"]}
    params["pretraining"]["seeds"] = [1, 2]
    params["question_answering"] |= {"epochs": 1, "seeds": [1]}
    params["tasks"] |= {"train_examples": 24, "validation_examples": 12}
    params["tasks"]["questions"] |= {"train_examples": 24, "validation_examples": 12}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    from stages.tasks import stage as tasks

    Path("data").mkdir()
    tasks.main(load_settings())
    Path("data/tokens/tokenizer").mkdir(parents=True)
    tokenizer.rename("data/tokens/tokenizer/tokenizer.json")
    for seed in (1, 2):
        pretrained(Path(f"data/pretraining/original-tiny/seed-{seed}"), question_answering.TOKENIZER)
    return tmp_path


def test_the_stage_measures_every_task_and_trains_on_triviaqa_once_a_pair_of_seeds(prepared, capsys):
    run_stage(["question_answering"])
    printed = capsys.readouterr().out
    assert "question_answering: 2 jobs" in printed and "question_answering: 10 jobs, 2 of them done before" in printed
    rows = observations.read([Path("data/observations/question_answering.csv")])
    tasks = ["squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa"]
    assert rows["task"].drop_duplicates().tolist() == tasks
    assert len(rows) == 4 * 2 * 2 and rows.duplicated(["task", "metric", "pretraining_seed"]).sum() == 0
    assert (rows["evaluated_on"] == rows["task"].str[:6]).all()
    assert set(rows["metric"]) == {"exact_match", "f1"} and set(rows["protocol"]) == {"kowsher2025"}
    assert (rows["n"] == 12).all() and rows["value"].between(0, 1).all()
    saved = pd.read_parquet("data/answers/original-tiny.parquet")
    assert len(saved) == 4 * 2 * 12
    own = saved.query("task == 'squad2_triviaqa' and pretraining_seed == 2")
    gold = pd.read_parquet("data/tasks/squad2/validation.parquet")["answers"]
    measured = rows.query("task == 'squad2_triviaqa' and pretraining_seed == 2").set_index("metric")["value"]
    assert measured.to_dict() == pytest.approx(scores(own["prediction"].tolist(), gold.tolist()))
    # a second run does nothing and gives the same bytes
    path = Path("data/observations/question_answering.csv")
    first = path.read_bytes()
    path.unlink()
    run_stage(["question_answering"])
    assert "10 jobs, 10 of them done before" in capsys.readouterr().out
    assert path.read_bytes() == first


def test_runs_after_triviaqa_start_from_the_model_of_their_seeds(prepared):
    settings = load_settings()
    first = question_answering.plan_first_runs(settings, MODELS)
    trained = {(run.weights, run.seed): Path(f"after-{run.pretraining_seed}") for run in first}
    plan = question_answering.plan_runs(settings, MODELS, trained)
    starts = {(run.task, run.pretraining_seed): run.weights for run in plan}
    assert starts["squad1_triviaqa", 2] == starts["squad2_triviaqa", 2] == "after-2"
    assert starts["squad2", 1] == "data/pretraining/original-tiny/seed-1"
    without = settings.question_answering.model_copy(update={"tasks": ("squad1",)})
    settings = settings.model_copy(update={"question_answering": without})
    assert question_answering.plan_first_runs(settings, MODELS) == []


def test_real_answers_are_the_texts_of_their_spans(shared_data, tmp_path):
    vocabulary = (shared_data / "vocab" / "bert-base-uncased-vocab.txt").read_text(encoding="utf-8").split("\n")[:30522]
    path, questions = tmp_path / "tokenizer.json", tmp_path / "train.parquet"
    word_pieces({piece: number for number, piece in enumerate(vocabulary)}).save(str(path))
    frame = squad.read_original(shared_data, "squad1", "train").frame
    frame.to_parquet(questions)
    windows = encode(questions, path, 384, 64, 128)
    spans = texts_of_spans(questions, windows)
    assert {question for question, _ in spans} == set(range(len(frame)))
    longer = [(text, frame["answers"][i][0]) for i, text in spans if text != frame["answers"][i][0]]
    assert all(answer in text for text, answer in longer)  # where an answer is a part of a word, or begins with a space
    assert len(longer) < 0.01 * len(spans)
