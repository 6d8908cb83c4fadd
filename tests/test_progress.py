"""The progress of long work without a terminal."""

from stages.runner import bars


def test_without_a_terminal_lines_say_how_far_the_work_is_and_nothing_is_drawn(monkeypatch, capsys):
    monkeypatch.setattr(bars, "EVERY", 0.01)
    with bars.Bar(total=24, desc="finetuning") as bar:
        bar.update(5)
        while "finetuning: 5 of 24, 00:0" not in (said := capsys.readouterr()).out:
            assert said.err == ""
    for _ in bars.Bar(range(3), "steps"):
        pass
    assert capsys.readouterr().err == ""
