"""The studies beside the chain: what they cut, count and draw."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from stages.plumbing import files, observations
from stages.plumbing.settings import load_settings
from stages.sequences.packing import Sequences
from stages.studies.english import study as english
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


def english_losses(leaves: dict[str, int], ends: dict[str, float], seeds=range(31, 35)) -> pd.DataFrame:
    """Validation losses of runs that fall from 6.1 nats to their end at a step of their own; 2,401 is never."""
    rows = [
        ("pretraining", "validation_loss", arm, "mini", seed, step, 6.1 if step < at + 50 * (seed % 3) else end)
        for arm, at in leaves.items()
        for seed in seeds
        for step in range(50, 2401, 50)
        for end in [ends[arm] + 0.01 * (seed % 4) + 0.001 * seed * (arm != "original")]
    ]
    columns = ["stage", "metric", "operator", "size", "pretraining_seed", "step", "value"]
    return pd.DataFrame(rows, columns=columns)


def test_an_arm_is_compared_with_the_original_seed_by_seed():
    leaves, ends = {"original": 500, "symmetric": 900, "pairwise": 2401}, {"original": 4.0, "symmetric": 4.4}
    runs = english.outcomes(english_losses(leaves, ends | {"pairwise": 4.0}))
    compared = english.contrasts(runs, 0.95, 0.025).set_index(["outcome", "arm"])
    steps = english.STEPS.format(english.THRESHOLD)
    at = {arm: runs[(runs["arm"] == arm) & (runs["outcome"] == steps)].set_index("seed")["value"] for arm in leaves}
    differences = at["pairwise"] - at["original"]
    assert list(at["pairwise"]) == [2400.0] * 4  # a run that never gets there counts with its last step
    row = compared.loc[steps, "pairwise"]
    assert row["estimate"] == differences.mean() and row["never"] == 4 and row["verdict"] == "later"
    assert row["p"] == pytest.approx(stats.ttest_rel(at["pairwise"], at["original"]).pvalue)
    assert compared.loc[steps, "symmetric"]["estimate"] == 400.0


def test_the_final_loss_is_compared_of_arms_alone_whose_runs_have_all_left_the_plateau():
    leaves, ends = {"original": 500, "symmetric": 900, "pairwise": 2401}, {"original": 4.0, "symmetric": 4.4}
    runs = english.outcomes(english_losses(leaves, ends | {"pairwise": 4.0}))
    compared = english.contrasts(runs, 0.95, 0.025)
    losses = compared[compared["outcome"] == english.LOSS]
    assert list(losses["arm"]) == ["symmetric"] and losses["verdict"].item() == "higher"
    assert losses["p_holm"].item() == losses["p"].item()  # a family of one


def test_symmetric_starts_are_compared_with_asymmetric_ones_where_every_arm_of_both_is_there():
    ends = dict.fromkeys(english.ASYMMETRIC, 4.0) | dict.fromkeys(english.SYMMETRIC, 4.4)
    runs = english.outcomes(english_losses(dict.fromkeys(ends, 500), ends))
    last = english.contrasts(runs, 0.95, 0.025).iloc[-1]
    assert last["arm"] == "symmetric at the start" and last["estimate"] == pytest.approx(0.4, abs=0.02)
    some = runs[runs["arm"] != "shared_kv"]
    assert "symmetric at the start" not in set(english.contrasts(some, 0.95, 0.025)["arm"])


def test_a_difference_within_the_margin_is_called_equivalent():
    leaves = {"original": 500, "pairwise_scaled": 500}
    losses = english_losses(leaves, {"original": 4.0, "pairwise_scaled": 3.967})
    compared = english.contrasts(english.outcomes(losses), 0.95, 0.025).set_index("outcome")
    assert compared.loc[english.LOSS, "verdict"] == "equivalent"


def test_every_arm_is_compared_at_the_rate_at_which_its_run_of_the_selection_seed_ends_lowest():
    leaves, rates = {"original": 500, "symmetric": 900}, []
    for rate, lower in ((1e-3, {"original": 0.3}), (2e-3, {}), (4e-3, {"symmetric": 0.2})):
        ends = {arm: 4.0 - lower.get(arm, 0.0) for arm in leaves}
        seeds = (english.SELECTION_SEED, *range(31, 35))
        rates.append(english.outcomes(english_losses(leaves, ends, seeds)).assign(learning_rate=rate))
    own = english.at_own_rates(pd.concat(rates))
    assert own.groupby("arm")["learning_rate"].unique().map(list).to_dict() == {"original": [1e-3], "symmetric": [4e-3]}
    assert set(own["seed"]) == set(range(31, 35))  # runs that have chosen the rate do not count
    assert english.contrasts(own, 0.95, 0.025).iloc[-1]["estimate"] == pytest.approx(0.1, abs=0.04)


def test_a_folder_without_runs_of_the_original_is_refused(tmp_path):
    (tmp_path / "params.yaml").write_text("operators: [original, shared]\nanalysis: {confidence: 0.95, alpha: 0.025}")
    (tmp_path / "observations").mkdir()
    place = {"operator": "shared", "size": "mini", "condition": "step=1", "pretraining_seed": 1}
    row = observations.Observation(stage="pretraining", metric="validation_loss", value=4.0, **place)
    observations.write(tmp_path / "observations/a.csv", [row])
    with pytest.raises(ValueError, match="no run of original"):
        english.main(tmp_path)


def test_the_figure_of_english_is_of_equal_bytes_for_equal_numbers():
    losses = english_losses({"original": 500, "shared": 2401}, {"original": 4.0, "shared": 4.0})
    runs = english.outcomes(losses)
    assert english.figure(losses, runs) == english.figure(losses, runs)


def test_the_page_of_english_has_the_numbers_of_its_contrasts(tmp_path):
    folder = Path(__file__).parents[1] / "reports/examples/english"
    shutil.copytree(folder, tmp_path / "english")
    english.main(tmp_path / "english")
    for name in ("runs.csv", "contrasts.csv", "rates.csv", "own_rates.csv", "english.svg"):
        assert (tmp_path / "english" / name).read_bytes() == (folder / name).read_bytes()
    runs, compared = (pd.read_csv(folder / f"{name}.csv") for name in ("runs", "contrasts"))
    means = runs.groupby(["outcome", "arm"])["value"].mean()
    matched = compared[compared["reference"] != "original"].set_index(["outcome", "arm"])
    compared = compared[compared["reference"] == "original"].set_index(["outcome", "arm"])
    steps = english.STEPS.format(english.THRESHOLD)
    lines = (folder / "README.md").read_text(encoding="utf-8").replace("−", "-").splitlines()
    page = " ".join(lines)
    rows, at_own = (
        {cells[1]: cells[2:-1] for line in lines if len(cells := [cell.strip(" *") for cell in line.split("|")]) == n}
        for n in (7, 11)
    )
    for arm in compared.loc[steps].index:
        named = next(name for name in rows if name == arm or f"(`{arm}`)" in name)
        shown, row = rows[named], compared.loc[steps, arm]
        if row["never"] == row["seeds"] == 4:
            assert shown[:3] == [
                "none of 4 runs",
                f"at least {row['estimate']:,.0f} (lower end {row['low']:,.0f}; all four runs censored)",
                "not compared",
            ]
            assert f"a lower bound: {row['estimate']:,.0f} steps, and {row['low']:,.0f} at the lower end" in page
            continue
        assert shown[1] == f"{row['estimate']:,.0f} ({row['low']:,.0f} to {row['high']:,.0f})"
        loss = compared.loc[english.LOSS, arm]
        assert shown[0] == f"{means[steps, arm]:,.0f}" and shown[2] == f"{means[english.LOSS, arm]:.2f}"
        assert shown[3] == f"{loss['estimate']:.3f} ({loss['low']:.3f} to {loss['high']:.3f})"
    rates, own = (pd.read_csv(folder / f"{name}.csv") for name in ("rates", "own_rates"))
    selecting = rates[(rates["seed"] == english.SELECTION_SEED) & (rates["outcome"] == english.LOSS)]
    selecting = selecting.pivot(index="arm", columns="learning_rate", values="value")
    own_means = english.at_own_rates(rates).groupby(["outcome", "arm"])["value"].mean()
    matched_own = own[own["reference"] != "original"].set_index(["outcome", "arm"])
    own = own[own["reference"] == "original"].set_index(["outcome", "arm"])
    assert own.loc[[steps, english.LOSS]].query('verdict != "undecided"')["p_holm"].max() < 0.004
    for arm in selecting.index:
        named = next(name for name in at_own if name == arm or f"(`{arm}`)" in name)
        assert at_own[named][:3] == [f"{loss:.2f}" for loss in selecting.loc[arm]]
        assert float(at_own[named][3]) == selecting.loc[arm].idxmin()
        assert at_own[named][4] == f"{own_means[steps, arm]:,.0f}"
        assert at_own[named][6] == f"{own_means[english.LOSS, arm]:.2f}"
        if arm != "original":
            later, higher = own.loc[steps, arm], own.loc[english.LOSS, arm]
            assert at_own[named][5] == f"{later['estimate']:,.0f} ({later['low']:,.0f} to {later['high']:,.0f})"
            assert at_own[named][7] == f"{higher['estimate']:.3f} ({higher['low']:.3f} to {higher['high']:.3f})"
    wide = [matched_own.loc[outcome, "pairwise"] for outcome in (steps, english.LOSS)]
    none = "{:.0f} steps, {:.0f} to {:.0f}; ".format(*wide[0][["estimate", "low", "high"]])
    assert f"({none}{{:.3f}} nats, {{:.3f}} to {{:.3f}})".format(*wide[1][["estimate", "low", "high"]]) in page
    readme = " ".join((folder.parents[2] / "README.md").read_text(encoding="utf-8").split())
    original, symmetric, shared, pairwise = (
        f"{own_means[steps, arm]:,.0f}" for arm in ("original", "symmetric", "shared", "pairwise")
    )
    falls = f"gets there after {original} steps, pairwise as its source initialises it after {pairwise}"
    assert f"{falls}, symmetric after {symmetric} and shared after {shared}," in readme
    interval = compared.loc[steps, "shared_kv"][["estimate", "low", "high"]]
    late = compared.loc[steps, "symmetric"]["estimate"]
    late_words = "is about {:.0f} steps later ({:.0f} to {:.0f}; not shown after correction), symmetric {:.0f}."
    assert late_words.format(*interval, late) in readme
    shown = compared[compared["verdict"] != "undecided"]
    assert compared.loc[[steps, english.LOSS]].query('verdict != "undecided"')["p_holm"].max() < 0.007 and set(
        shown.loc[steps].index
    ) == {"symmetric", "shared", "pairwise", "partial_qk", "tied_qkv"}
    scaled = compared.xs("pairwise_scaled", level="arm")
    assert f"(p = {scaled.loc[english.LOSS, 'p_equivalence']:.2f})" in page
    detectable = scaled["detectable"]
    assert f"{detectable[steps]:.0f} steps or {detectable[english.LOSS]:.2f} nats" in page
    ends = runs[(runs["arm"] == "pairwise") & (runs["outcome"] == english.LOSS)]["value"]
    assert f"ends between {ends.min():.2f} and {ends.max():.2f}" in page
    early = runs[(runs["arm"] == "pairwise") & (runs["outcome"] == english.STEPS.format(5.7)) & runs["reached"]]
    assert f"one run of pairwise falls below 5.7, at step {early['value'].item():,.0f}" in page
    stuck = compared.loc[english.STEPS.format(5.3)]["never"]
    assert (stuck[["shared", "tied_qkv"]] == 2).all()
    assert "two runs of shared never get below 5.3, nor do two of `tied_qkv`" in page
    alone = compared.xs("shared_kv", level="arm")["p_holm"]
    assert f"(p = {alone[steps]:.3f} and {alone[english.LOSS]:.3f})" in page
    later, higher = matched.loc[steps, "symmetric"], matched.loc[english.LOSS, "symmetric"]
    assert "symmetric is {:.0f} steps ({:.0f} to {:.0f}) later".format(*later[["estimate", "low", "high"]]) in page
    assert "and {:.3f} nats ({:.3f} to {:.3f}) higher".format(*higher[["estimate", "low", "high"]]) in page
    wide = runs[(runs["arm"] == "original_wide") & (runs["outcome"] == steps)]["value"]
    assert f"at least {matched.loc[steps, 'pairwise']['low']:,.0f} steps later than `original_wide`" in page
    assert f"leaves the plateau in all four runs (steps {wide.min():,.0f} to {wide.max():,.0f})" in page
    groups = matched.loc[english.LOSS, "symmetric at the start"]
    assert "ends {:.3f} nats ({:.3f} to {:.3f}) above".format(*groups[["estimate", "low", "high"]]) in page
    findings = " ".join((folder.parent / "README.md").read_text(encoding="utf-8").split())
    most = scaled.loc[steps, "high"], scaled.loc[english.LOSS, "high"]
    assert "the intervals reach {:.0f} steps and {:.2f} nats".format(*most) in findings
    alone = "symmetric is {:.0f} steps later than it ({:.0f} to {:.0f}; a comparison chosen afterwards)"
    assert (
        alone.format(*later[["estimate", "low", "high"]]) in page
        and alone.format(*later[["estimate", "low", "high"]]) in findings
    )
    wider = matched.loc[steps, "pairwise"]
    least = f"pairwise is at least {wider['estimate']:,.0f} steps later at one rate (lower end {wider['low']:,.0f})"
    assert least in findings
    leaving = runs[runs["reached"]].pivot(index=["arm", "seed"], columns="outcome", values="value")
    assert (
        f"(r = {leaving[steps].corr(leaving[english.LOSS]):.3f} over the runs that leave, mostly between arms" in page
    )
    released = pd.read_csv(folder.parent / "files/tables/milestones.csv").query(
        "source == 'released' and size == 'base'"
    )
    ends_of_plateaus = released[released["milestone"] == "plateau_end_step"].set_index("operator")["mean"]
    assert (
        "at step {symmetric:,.0f} and pairwise at {pairwise:,.0f}, before the original at {original:,.0f}".format(
            **ends_of_plateaus
        )
        in page
    )


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"no gzip", lambda content: b""])
def test_a_damaged_file_of_observations_is_one_error_that_names_it(damage, tmp_path):
    path = tmp_path / "a.csv.gz"
    pd.DataFrame([[1.0] * len(observations.COLUMNS)], columns=[*observations.COLUMNS]).to_csv(path, index=False)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"^{path}: damaged .*; delete it"):
        observations.read([path])
