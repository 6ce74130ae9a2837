"""What becomes of a patch's promise, without running a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import promises
from benchmarks.diagnosis import labelled
from benchmarks.kept_rows import keep_rows, read_rows
from benchmarks.promises import Row, drawn, markdown, row_of, summary
from pipediag.errors import PipediagError
from pipediag.runner.native_runs import Obtained, TooLongError
from pipediag.session.ledger import Run, RunGain
from pipediag.session.model import Session
from pipediag.session.patches import Patch
from pipediag.trials.statistics import Estimate
from tests.factories import make_finding, make_session
from tests.reporters import trial_sessions

EXPECTED = labelled(("pure_map",))[0]
GAIN = RunGain(speedup=2.0, ci95=(1.8, 2.2), before_s=20, after_s=10, basis="measured", scope="run")


def row(outcome: str, rules: tuple[str, ...] = ("missing-cache",)) -> Row:
    return Row("one", list(rules), outcome, [2.0, 1.8, 2.2], [1.9, 1.7, 2.1], "a machine")


def session_with(patch: Patch | None) -> Session:
    finding = make_finding(
        "missing-cache", edit=trial_sessions.CACHE, trial=trial_sessions.CONFIRMED, for_run=GAIN
    )
    return make_session(findings=[finding], patch=patch)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(1.7, 1.9, "kept"), (2.3, 2.5, "more"), (1.2, 1.7, "less"), (2.1, 2.5, "kept")],
)
def test_intervals_that_overlap_keep_the_promise(
    low: float, high: float, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = Patch(diff="-a", edits=[trial_sessions.CACHE.id], files=[], left_out=[])
    monkeypatch.setattr(promises, "analyze", lambda *_: session_with(patch))
    monkeypatch.setattr(promises, "patched_files", lambda *_: {})
    found = Estimate((low + high) / 2, low, high, 3)
    monkeypatch.setattr(promises, "measured", lambda *_: Obtained(found, script_s=20.0))

    made = row_of(EXPECTED, 3, 30.0, Path("anywhere"))

    assert (made.outcome, made.rules) == (outcome, ["missing-cache"])
    assert (made.promised, made.obtained) == ([2.0, 1.8, 2.2], [found.value, low, high])


def test_what_fails_is_told_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Obtained:
        raise PipediagError("pure_map_patched_1.py ended with 1: no such line")

    patch = Patch(diff="-a", edits=[trial_sessions.CACHE.id], files=[], left_out=[])
    monkeypatch.setattr(promises, "analyze", lambda *_: session_with(patch))
    monkeypatch.setattr(promises, "patched_files", lambda *_: {})
    monkeypatch.setattr(promises, "measured", fails)

    made = row_of(EXPECTED, 3, 30.0, Path("anywhere"))

    assert made.outcome.startswith("pure_map_patched_1.py ended with 1")
    assert made.counts
    assert not made.good


def test_an_edit_without_a_patch_counts_and_a_script_without_an_edit_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(promises, "analyze", lambda *_: session_with(None))
    assert (
        row_of(EXPECTED, 3, 30.0, Path("anywhere")).outcome,
        row_of(EXPECTED, 3, 30.0, Path("anywhere")).counts,
    ) == (
        "no patch",
        True,
    )
    monkeypatch.setattr(promises, "analyze", lambda *_: make_session(findings=[]))
    assert not row_of(EXPECTED, 3, 30.0, Path("anywhere")).counts


@pytest.mark.parametrize("said", [True, False])
def test_a_script_that_takes_too_long_is_passed_over(
    said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = Patch(diff="-a", edits=[trial_sessions.CACHE.id], files=[], left_out=[])
    run = Run(scope="run", total_s=promises.LIMIT_S * 2, pipediag_s=0.0, parts=[])
    session = session_with(patch).model_copy(update={"run": run if said else None})

    def too_long(*_: object) -> Obtained:
        assert not said
        raise TooLongError("train.py had not ended after 90 s.")

    monkeypatch.setattr(promises, "analyze", lambda *_: session)
    monkeypatch.setattr(promises, "patched_files", lambda *_: {})
    monkeypatch.setattr(promises, "measured", too_long)
    assert not row_of(EXPECTED, 3, 30.0, Path("anywhere")).counts


def test_the_same_scripts_are_drawn_each_time() -> None:
    assert [one.name for one in drawn(())] == [one.name for one in drawn(())]
    assert len({one.name for one in drawn(())}) == len(drawn(())) >= 20
    assert all(one.trials.confirmed for one in drawn(()))


def test_the_sentence_counts_what_was_to_be_kept() -> None:
    rows = [row("kept"), row("more"), row("less"), row("no patch"), row("nothing confirmed")]

    assert summary(rows).startswith("Of 4 scripts on which edits were confirmed, 2 (50 %) have")
    assert "Others: 1 less, 1 no patch." in summary(rows)
    assert "| `one` | `missing-cache` | 2.00x [1.80, 2.20] | 1.90x [1.70, 2.10] | kept |" in (
        markdown(rows)
    )


def test_rows_come_back_as_they_were_kept(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    assert read_rows(file) == []
    keep_rows(file, [{"a": 1}, {"a": [2.5]}])
    assert read_rows(file) == [{"a": 1}, {"a": [2.5]}]
