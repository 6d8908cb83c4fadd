"""The studies beside the chain: what they cut, count and draw."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from stages.plumbing import files, observations
from stages.plumbing.settings import load_settings
from stages.sequences.packing import Sequences
from stages.studies.lengths import study
from tests.toy import LENGTH, packed


def test_the_corpus_cut_to_a_length_holds_the_same_tokens_in_the_same_order(tmp_path, monkeypatch):
    tokens = packed(tmp_path / "tokens")
    monkeypatch.setattr(study, "TOKENS", tokens)
    cut = study._cut(LENGTH // 3)
    for split in ("train", "validation"):
        whole, parts = Sequences(tokens, split), Sequences(cut, split)
        assert len(parts) == 3 * len(whole) and parts.sequence_length == LENGTH // 3
        assert np.array_equal(parts[range(len(parts))].ravel(), whole[range(len(whole))].ravel())
    assert files.sha256(cut / "train" / "part_1.bin") == files.sha256(tokens / "train" / "part_1.bin")


def test_a_run_leaves_the_plateau_at_its_first_evaluation_below_the_threshold_or_never():
    corpus = study.CORPORA[0]
    above, below = corpus.threshold + 0.1, corpus.threshold - 0.1
    losses = {1: [above, above, below, above, below], 2: [above] * 5}
    rows = [
        (corpus.name, 8, seed, 50 * (i + 1), loss) for seed, values in losses.items() for i, loss in enumerate(values)
    ]
    events = study.leaving(pd.DataFrame(rows, columns=study.COLUMNS))
    assert events[["seed", "step", "reached"]].values.tolist() == [[1, 150, True], [2, 250, False]]


def test_every_length_of_the_study_trains_on_as_many_tokens_a_batch():
    for corpus in study.CORPORA:
        assert all(corpus.tokens % length == 0 and max(study.LENGTHS) % length == 0 for length in study.LENGTHS)


@pytest.mark.parametrize("corpus", study.CORPORA, ids=lambda corpus: corpus.scale)
def test_the_runs_of_a_length_are_those_of_the_chain_with_batches_of_equally_many_tokens(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "_cut", lambda length: tmp_path / str(length))
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(study._params(corpus, tmp_path)))
    settings = load_settings(path)
    for length in study.LENGTHS:
        runs = [*study._runs(corpus, settings, length)]
        assert [run.seed for run in runs] == [*study.SEEDS]
        assert {run.training.batch_size * length for run in runs} == {corpus.tokens}
        assert all(run.training.sequence_length_warmup is None for run in runs)


def test_the_figure_and_the_findings_are_those_of_the_runs_of_the_study():
    folder = Path(__file__).parents[1] / "reports/examples/lengths"
    page = " ".join(folder.with_name("README.md").read_text(encoding="utf-8").split())
    losses = pd.read_csv(folder / "observations.csv")
    assert study.figure(losses) == (folder / "curves.svg").read_text(encoding="utf-8")
    events = study.leaving(losses)
    pd.testing.assert_frame_equal(events, pd.read_csv(folder / "leaving.csv"))
    steps = {key: sorted(runs.loc[runs["reached"], "step"]) for key, runs in events.groupby(["corpus", "length"])}
    text, wikipedia = ({length: steps[name, length] for length in study.LENGTHS} for name in events["corpus"].unique())
    assert set(text[8]) == {250} and "after 250 steps with sequences of 8 tokens" in page
    assert f"after {text[16][0]} to {text[16][-1]} with 16" in page and len(text[16]) == 3
    assert len(text[32]) == 1 and "with 32 tokens one of three runs left within 1,200 steps, and with 64 none" in page
    said = (
        f"{wikipedia[8][0]} to {wikipedia[8][-1]} steps with 8 tokens and {wikipedia[16][0]:,} to {wikipedia[16][-1]:,}"
    )
    assert f"it takes {said} with 16" in page and len(wikipedia[8]) == len(wikipedia[16]) == 3
    assert not text[64] and not wikipedia[32] and not wikipedia[64]
    assert "with 32 and with 64 none of three runs left within 4,000 steps" in page
    ends = events[events["corpus"] == "English Wikipedia"].groupby("length")["final_loss"].agg(list)
    assert "({:.2f}, {:.2f} and {:.2f} nats)".format(*ends[32]) in page
    assert f"({min(ends[64]):.2f} to {max(ends[64]):.2f})" in page


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"no gzip", lambda content: b""])
def test_a_damaged_file_of_observations_is_one_error_that_names_it(damage, tmp_path):
    path = tmp_path / "a.csv.gz"
    pd.DataFrame([[1.0] * len(observations.COLUMNS)], columns=[*observations.COLUMNS]).to_csv(path, index=False)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"^{path}: damaged .*; delete it"):
        observations.read([path])
