"""SQuAD and TriviaQA in the original form, the official scores, and the embedded questions."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from stages.benchmarks.answers import compute_scores, normalise_answer
from stages.schema.sections import Hub
from stages.tasks import squad, triviaqa
from stages.tasks import stage as tasks
from stages.tasks.examples import Examples
from tests.files import write_file
from tests.toy_tasks import EMBEDDED, make_hub, make_settings

CONTEXT = "The Seine flows through Paris. Paris is old."
QAS = r"\$\.data\[0\]\.paragraphs\[0\]\.qas"  # as an error names the questions of the only paragraph


# scores


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Seine", "seine"),
        ("a  an\tthe  Theatre an ant", "theatre ant"),
        ("the-end", "theend"),  # punctuation goes first, as officially: no article is left to delete
        ("(the) end", "end"),
        ("Ünïted\u00a0Kingdom", "ünïted kingdom"),
        ("5–6 km", "5–6 km"),
        ("", ""),
    ],
)
def test_normalisation_is_the_official_one(text, expected):
    assert normalise_answer(text) == expected


@pytest.mark.parametrize(
    ("prediction", "gold", "exact", "overlap"),
    [
        ("the Seine.", ["Seine"], 1, 1),
        # Words count as often as both texts have them.
        ("big big dog", ["big dog dog"], 0, 2 / 3),
        ("dog dog", ["dog dog cat"], 0, 4 / 5),
        # The gold answer that fits best counts for each metric.
        ("red car", ["a red car and a bus", "car"], 0, 2 / 3),
        ("red car", ["bus", "The red car!"], 1, 1),
        # An unanswerable question wants the empty text.
        ("", [], 1, 1),
        # Gold answers without a word do not count.
        ("", ["word", "."], 0, 0),
    ],
)
def test_scores_of_constructed_cases(prediction, gold, exact, overlap):
    assert compute_scores([prediction], [gold]) == {"exact_match": exact, "f1": pytest.approx(overlap)}
    mean = compute_scores([prediction, "x"], [gold, ["y"]])
    assert mean == {"exact_match": exact / 2, "f1": pytest.approx(overlap / 2)}


@pytest.mark.parametrize(("predictions", "answers"), [(["a"], []), ([], [])])
def test_predictions_without_their_questions_are_refused(predictions, answers):
    with pytest.raises(ValueError, match="for 0 questions"):
        compute_scores(predictions, answers)


# files of SQuAD


def make_entry(name="q1", text="Paris", start=24, **more) -> dict:
    return {"id": name, "question": "Where?", "answers": [{"text": text, "answer_start": start}], **more}


def write_squad_file(root: Path, *questions: dict, name="train-v1.1.json", context=CONTEXT) -> Path:
    content = {"version": "1.1", "data": [{"title": "T", "paragraphs": [{"context": context, "qas": list(questions)}]}]}
    return write_file(root / "squad" / name, json.dumps(content, ensure_ascii=False))


def test_a_file_becomes_rows_with_offsets_in_characters(tmp_path):
    question = make_entry(text="naïve 😀", start=3)
    question["answers"].append({"text": "said", "answer_start": 12})
    write_squad_file(tmp_path, question, context="“é naïve 😀” said")
    found = squad.read_original(tmp_path, "squad1", "train")
    assert (found.source, found.subset, found.dropped) == ("train-v1.1.json", False, 0)
    [row] = found.frame.to_dict("records")
    assert row["example_id"] == "q1"
    assert row["answers"] == ["naïve 😀", "said"]
    assert row["starts"] == [3, 12]


def test_whole_files_go_before_subsets_and_subsets_are_marked(tmp_path):
    write_squad_file(tmp_path, make_entry(), name="dev-v2.0.subset.json")
    assert squad.read_original(tmp_path, "squad2", "validation").subset
    write_squad_file(tmp_path, make_entry("q9"), name="dev-v2.0.json")
    assert squad.read_original(tmp_path, "squad2", "validation").frame["example_id"].tolist() == ["q9"]


def test_unanswerable_questions_have_no_answers_whatever_was_plausible(tmp_path):
    plausible = make_entry(is_impossible=True) | {
        "answers": [],
        "plausible_answers": [{"text": "x", "answer_start": 0}],
    }
    write_squad_file(tmp_path, plausible, make_entry("q2", is_impossible=False), name="train-v2.0.json")
    found = squad.read_original(tmp_path, "squad2", "train")
    assert found.frame["answers"].tolist() == [[], ["Paris"]]
    assert tasks.compute_majority_share(found.frame, "squad2") == 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            [make_entry(start=25)],
            r"train-v1\.1\.json, question 'q1': the context has 'aris.' at answer_start 25, not the answer 'Paris'",
        ),
        ([make_entry(start=-20)], "has 'The S' at answer_start -20, not the answer 'Paris'"),
        ([make_entry(), make_entry()], r"train-v1\.1\.json, question 'q1': the id comes twice"),
        ([make_entry() | {"answers": []}], "question 'q1': no answer, but SQuAD 1.1 has only answerable questions"),
        (
            [make_entry() | {"answers": [], "is_impossible": False}],
            "question 'q1': neither an answer nor is_impossible",
        ),
        ([make_entry(start="24")], rf"Expected `int`, got `str` - at `{QAS}\[0\]\.answers\[0\]\.answer_start`"),
        ([make_entry(text="")], "question 'q1': the answer at answer_start 24 is empty"),
        ([], r"train-v1\.1\.json: no question"),
        (
            b"[" * 100_000,
            r"train-v1\.1\.json: not of the form of the original files \(Expected `object`, got `array`\)",
        ),
        ('{"data": "é"}'.encode("latin-1"), "not whole JSON in UTF-8"),
        (b'{"version": "1.1", "data": [{"title": "T", "par', "not whole JSON in UTF-8"),
        (b'{"data": []}\n{"data": []}', "not whole JSON in UTF-8.*trailing characters.*fetch the file again"),
    ],
)
def test_a_fault_is_named_with_its_file_and_question(tmp_path, content, message):
    if isinstance(content, list):
        write_squad_file(tmp_path, *content)
    else:
        write_squad_file(tmp_path).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        squad.read_original(tmp_path, "squad1", "train")


def test_a_byte_order_mark_and_blank_last_lines_do_no_harm(tmp_path):
    path = write_squad_file(tmp_path, make_entry())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\r\n\n")
    assert squad.read_original(tmp_path, "squad1", "train").frame["example_id"].tolist() == ["q1"]


def test_ids_may_be_numbers_and_titles_of_any_kind_or_missing(tmp_path):
    path = write_squad_file(tmp_path, make_entry(7), make_entry(8))
    with_title = json.loads(path.read_text())
    for title in ("T", 2012, None, ...):
        article = {"title": title, "paragraphs": with_title["data"][0]["paragraphs"]}
        if title is ...:
            del article["title"]
        path.write_text(json.dumps({"data": [article]}))
        frame = squad.read_original(tmp_path, "squad1", "train").frame
        assert frame["example_id"].tolist() == ["7", "8"]
        assert frame["article"].map(type).eq(str).all()


def test_rows_of_the_hub_may_have_numbers_as_ids_and_no_titles(tmp_path):
    answers = {"text": ["Paris"], "answer_start": [24]}
    repository = make_hub(
        tmp_path / "hub", [{"id": 7, "context": CONTEXT, "question": "?", "answers": answers}], "squad"
    )
    frame = squad.read_hub(repository, "squad1", "validation").frame
    assert frame[["example_id", "article"]].values.tolist() == [["7", ""]]


def test_articles_without_a_title_count_as_one_when_answers_are_taken_away():
    toy = make_examples(*(("", context, context.split()[0]) for context in FRENCH))
    derived = squad.derive_unanswerable(toy, [1])
    assert (derived.frame["answers"].str.len() == 0).sum() == 1


FRENCH = ("Paris lies on the Seine.", "Lyon lies on the Rhône.", "Nice lies on the sea.", "Paris again, the city.")


def make_examples(*rows: tuple[str, str, str]) -> Examples:
    """Makes questions of (article, context, answer)."""
    complete = []
    for number, (article, context, answer) in enumerate(rows):
        complete.append((f"q{number}", context, "What?", [answer], [context.index(answer)], article))
    return Examples(squad.check_rows(complete, "toy", False), "toy.json")


@pytest.mark.parametrize("seed", range(4))
def test_a_derived_question_moves_to_a_paragraph_of_its_article_without_its_answer(seed):
    french = [("France", context, context.split()[0]) for context in FRENCH]
    toy = make_examples(*french, ("Italy", "Rome is in Italy.", "Rome"), ("Italy", "Of Rome and Nice.", "Rome"))
    derived = squad.derive_unanswerable(toy, [seed])
    moved = derived.frame["answers"].str.len() == 0
    assert moved.sum() == 2
    assert derived.subset
    assert "derived of toy.json" in derived.source
    assert derived.frame[~moved].equals(toy.frame[~moved])
    # The input is not changed in place.
    assert (toy.frame["answers"].str.len() == 1).all()
    for number, row in derived.frame[moved].iterrows():
        assert toy.frame["answers"][number][0] not in row["context"]
        # Every paragraph of the Italian article has Rome, so that its questions move to the other article.
        assert row["context"] in FRENCH
    assert squad.derive_unanswerable(toy, [seed]).frame.equals(derived.frame)


def test_a_derived_question_moves_to_the_paragraph_with_the_rarest_of_its_words():
    contexts = ("Rome, what?", "What and where?", "What and where, again?", "A rarity.")
    toy = make_examples(*(("Italy", context, context.split()[0]) for context in contexts))
    frame = toy.frame.assign(question="What rarity, where?")
    [moved] = squad.derive_unanswerable(replace(toy, frame=frame), [1]).frame.query("answers.str.len() == 0")["context"]
    assert moved == "A rarity."


@pytest.mark.parametrize("seed", range(4))
def test_a_paragraph_that_stands_in_two_articles_belongs_to_both(seed):
    there = "Rome lies there."
    toy = make_examples(("Italy", there, "Rome"), ("Cities", there, "Rome"), ("Italy", "Paris.", "Paris"))
    derived = squad.derive_unanswerable(toy, [seed])
    assert (derived.frame["answers"].str.len() == 0).sum() == 1


def test_without_another_paragraph_no_question_can_be_derived():
    rome = [("Italy", f"Rome {number}.", "Rome") for number in range(3)]
    with pytest.raises(ValueError, match=r"toy\.json, question 'q\d': every paragraph holds the answer"):
        squad.derive_unanswerable(make_examples(*rome), [1])


# TriviaQA


def write_trivia(root: Path, name: str, *entries: dict, **documents: str) -> None:
    write_file(root / "triviaqa/qa" / name, json.dumps({"Data": list(entries), "Version": 1.0}))
    for page, text in documents.items():
        part, _, file = page.partition("_")
        write_file(root / f"triviaqa/evidence/{part}/{file}.txt", text)


def ask(name: str, aliases: list[str], pages=(), results=()) -> dict:
    return {
        "QuestionId": name,
        "Question": "Which?",
        "Answer": {"Value": aliases[0], "Aliases": aliases},
        "EntityPages": [{"Filename": f"{page}.txt"} for page in pages],
        "SearchResults": [{"Filename": f"{page}.txt"} for page in results],
    }


def test_the_span_is_the_first_alias_in_the_first_document_that_has_one(tmp_path):
    documents = {"wikipedia_a": "Nothing here.", "wikipedia_b": "On sunset boulevard, West Sunset Boulevard."}
    question = ask("q1", ["Sunset Boulevard", "West Sunset Boulevard", "Sunset"], ["a", "b"])
    write_trivia(tmp_path, "wikipedia-train.json", question, **documents)
    found = triviaqa.read_original(tmp_path, "train", 50)
    row = found.frame.iloc[0]
    assert (row["example_id"], row["context"]) == ("q1", documents["wikipedia_b"])
    assert (row["answers"], row["starts"]) == (["sunset boulevard"], [3])  # the longest of those that begin there
    assert found.subset and found.source == "wikipedia-train.json"  # the web part is not there


@pytest.mark.parametrize(
    ("text", "alias", "place"),
    [
        ("The art of Arthur; ART.", "Art", 4),
        ("party", "art", None),
        ("C++ and C", "C", 0),
        ("anything", " ", None),
    ],
)
def test_an_alias_counts_as_whole_words_only(text, alias, place):
    match = triviaqa.find_alias(text, [alias])
    assert (match and match.start()) == place


def test_documents_are_cut_and_questions_without_an_answer_are_counted_with_the_reason(tmp_path):
    questions = [ask("q1", ["Late"], ["a"]), ask("q2", ["early"], ["a"]), ask("q3", ["never"], ["a"])]
    write_trivia(tmp_path, "wikipedia-dev.json", *questions, wikipedia_a="  early\n" + "word " * 20 + "late")
    write_trivia(tmp_path, "web-dev.json", ask("q1", ["late"], [], ["b"]), ask("q2", ["early"], ["a"]), web_b="Late!")
    found = triviaqa.read_original(tmp_path, "validation", 5)
    assert found.frame["example_id"].tolist() == ["q2", "q1"]
    assert found.frame["context"].tolist() == ["  early\nword word word word", "Late!"]
    assert found.dropped == 3
    assert not found.subset
    assert found.reason == "1 no answer in the first 5 words of a document; 2 in both parts"
    write_trivia(tmp_path, "wikipedia-dev.json", ask("q3", ["never"], ["a"]))
    write_trivia(tmp_path, "web-dev.json", ask("q4", ["never"], ["a"]))
    with pytest.raises(ValueError, match=r"2 no answer in the first 1 words .*; raise tasks\.questions"):
        triviaqa.read_original(tmp_path, "validation", 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SearchResults": [{"Filename": "gone.txt"}]}, r"question 'q1': document .*gone\.txt' cannot be read"),
        ({"SearchResults": [{"Filename": "a/../../b.txt"}]}, "question 'q1': the Filename 'a/../../b.txt' leads out"),
        ({"SearchResults": [{"Filename": "/etc/b.txt"}]}, "question 'q1': the Filename '/etc/b.txt' leads out"),
        ({"Answer": {}}, r"missing required field `Aliases` - at `\$\.Data\[0\]\.Answer`"),
    ],
)
def test_a_fault_of_triviaqa_is_named_with_its_file_and_question(change, message, tmp_path):
    write_trivia(tmp_path, "web-train.json", ask("q1", ["x"]) | change)
    with pytest.raises(ValueError, match=rf"web-train\.json.*{message}"):
        triviaqa.read_original(tmp_path, "train", 5)


# the hub's layout


def test_squad_in_the_layout_of_the_hub_gives_the_same_rows(tmp_path):
    unanswered = make_entry("q2", is_impossible=True) | {"answers": []}
    write_squad_file(tmp_path, make_entry(), unanswered, name="dev-v2.0.json")
    ours = squad.read_original(tmp_path, "squad2", "validation").frame
    texts = ours.rename(columns={"example_id": "id", "article": "title"})[["id", "title", "context", "question"]]
    rows = texts.to_dict("records")
    for row, answers, starts in zip(rows, ours["answers"], ours["starts"], strict=True):
        row["answers"] = {"text": answers, "answer_start": starts}
    repository = make_hub(tmp_path / "hub", rows, "squad_v2")
    theirs = squad.read_hub(repository, "squad2", "validation")
    pd.testing.assert_frame_equal(theirs.frame, ours)


@pytest.mark.parametrize("answers", [[{"text": "a", "answer_start": 0}], None, "a", {"text": "a", "answer_start": 0}])
def test_answers_of_another_form_on_the_hub_are_named_with_the_row(tmp_path, answers):
    row = {"id": "1", "context": "a", "question": "?", "answers": answers}
    repository = make_hub(tmp_path / "hub", [row], "squad")
    with pytest.raises(ValueError, match=r"hub\.squad1: .*row 0: Expected `.*; name another repository"):
        squad.read_hub(repository, "squad1", "validation")


def test_a_repository_that_cannot_be_loaded_is_named(tmp_path):
    nothing = Hub(repository=str(tmp_path / "nothing"), configuration="squad", revision="main")
    with pytest.raises(ValueError, match=r"tasks\.questions\.hub\.squad1: .*cannot be loaded"):
        squad.read_hub(nothing, "squad1", "validation")


def test_triviaqa_in_the_layout_of_the_hub_gives_the_same_rows(tmp_path):
    write_trivia(tmp_path, "wikipedia-dev.json", ask("q1", ["Two"], ["a"]), wikipedia_a="One, two.")
    write_trivia(tmp_path, "web-dev.json", ask("q2", ["three"], ["a"], ["b"]), web_b="Three or two.")
    ours = triviaqa.read_original(tmp_path, "validation", 9)
    questions = (
        ("q1", "Two", {"filename": ["a"], "wiki_context": ["One, two."]}, ("z", "Two")),
        ("q2", "three", {"filename": [], "wiki_context": []}, ("b", "Three or two.")),
    )
    rows = []
    for name, alias, pages, (file, text) in questions:
        row = {"question": "Which?", "question_id": name, "answer": {"aliases": [alias]}, "entity_pages": pages}
        rows.append(row | {"search_results": {"filename": [file], "search_context": [text]}})
    theirs = triviaqa.read_hub(make_hub(tmp_path / "hub", rows, "rc"), "validation", 9)
    pd.testing.assert_frame_equal(theirs.frame, ours.frame)
    assert not theirs.subset


# the embedded world


@pytest.mark.parametrize(("split", "number"), [("train", 600), ("validation", 400)])
def test_embedded_questions_are_read_like_real_questions(split, number):
    answerable = squad.read_original(EMBEDDED, "squad1", split)
    mixed = squad.read_original(EMBEDDED, "squad2", split)
    trivial = triviaqa.read_original(EMBEDDED, split, 100)
    assert len(answerable.frame) == len(mixed.frame) == len(trivial.frame) == number
    assert not answerable.subset and not trivial.subset
    assert tasks.compute_majority_share(answerable.frame, "squad1") is None
    assert tasks.compute_majority_share(mixed.frame, "squad2") == pytest.approx(1 / 3, abs=0.01)
    # One document of twenty in either part has no answer.
    assert trivial.dropped == number // 20


# the stage


def test_the_stage_writes_tables_and_statistics_and_the_same_bytes_again(tmp_path):
    questions = {"names": ("squad2", "triviaqa"), "squad2_training": "derived", "triviaqa_words": 60}
    given = make_settings(root=EMBEDDED, train=40, names=(), questions=questions)
    folders = [tmp_path / name for name in ("first", "again")]
    for folder in folders:
        folder.mkdir()
        rows = tasks.build_tasks(folder, given)
    assert rows["examples"].tolist() == [40, 400, 40, 400]
    assert rows["available"].tolist() == [600, 400, 600, 400]
    assert rows["dropped"].tolist() == [0, 0, 30, 20]
    assert rows["subset"].tolist() == [True, False, False, False]
    assert rows["source"][0].startswith("derived of train-v1.1.json: one question in 3 moved")
    for path in ("squad2/train.parquet", "triviaqa/validation.parquet"):
        first, again = (folder / path for folder in folders)
        assert first.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("name", "split", "count", "unanswerable"),
    [("squad1", "validation", 10570, 0), ("squad2", "validation", 11873, 5945), ("squad1", "train", 3997, 0)],
)
def test_real_files_have_their_counts_and_every_answer_stands_at_its_offset(
    shared_data, name, split, count, unanswerable
):
    found = squad.read_original(shared_data, name, split)  # which checks the offsets
    assert (len(found.frame), found.subset) == (count, split == "train")
    assert (found.frame["answers"].str.len() == 0).sum() == unanswerable
    gold = [answers[0] if answers else "" for answers in found.frame["answers"]]
    assert compute_scores(gold, found.frame["answers"]) == {"exact_match": 1.0, "f1": 1.0}
    share = unanswerable / count
    assert compute_scores([""] * count, found.frame["answers"])["f1"] == pytest.approx(share)
