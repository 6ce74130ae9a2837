from __future__ import annotations

from typing import Any

from pipediag.measures.loops import chosen_loop
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.settings import WantedLoop
from tests.recordings import make_recorded_loop, make_recording


def trained(line: int, elapsed_s: float, **overrides: Any) -> RecordedLoop:
    return make_recorded_loop(
        id=f"loop{line}",
        line=line,
        elapsed_ns=int(elapsed_s * 1e9),
        asked_ns=None,
        planned_steps=None,
        **overrides,
    )


def chosen(wanted: WantedLoop | None, *loops: RecordedLoop) -> tuple[int | None, str]:
    recording: Recording = make_recording(loops=list(loops), windows=[])
    loop, notes = chosen_loop(recording, wanted)
    return (loop.line if loop is not None else None), " ".join(notes)


def test_one_loop_needs_no_words() -> None:
    assert chosen(None, trained(10, 3)) == (10, "")
    assert chosen(10, trained(10, 3)) == (10, "")


def test_of_several_the_longest_is_taken_and_that_is_said() -> None:
    line, said = chosen("longest", trained(10, 3), trained(20, 9))
    assert line == 20
    assert said.startswith("Of 2 training loops the one at train.py:20 is diagnosed")
    assert "Others were seen at train.py:10; `--loop LINE` takes another." in said
    assert chosen(None, trained(10, 3), trained(20, 9)) == (line, said)


def test_the_line_decides_where_one_is_given() -> None:
    line, said = chosen(10, trained(10, 3), trained(20, 9))
    assert line == 10
    assert "is the one that --loop asks for. Others were seen at train.py:20." in said


def test_a_line_without_a_training_says_which_have_one() -> None:
    line, said = chosen(11, trained(10, 3), trained(20, 9))
    assert line is None
    assert "No training loop begins at line 11" in said
    assert "train.py:10, train.py:20" in said


def test_what_does_not_train_is_not_chosen() -> None:
    validation = trained(30, 99, role="validation")
    assert chosen(None, trained(10, 3), validation)[0] == 10
    assert chosen(30, trained(10, 3), validation)[0] is None


def stopped(wanted: WantedLoop | None, *loops: RecordedLoop, outcome: str = "stopped") -> str:
    recording = make_recording(loops=list(loops), windows=[], outcome=outcome)
    return " ".join(chosen_loop(recording, wanted)[1])


def test_that_the_source_trains_again_behind_a_stopped_loop_is_said() -> None:
    loop = trained(10, 3, followed_by=["/home/me/train.py:30", "/home/me/train.py:40"])
    said = stopped(None, loop)
    assert "trains again at train.py:30, train.py:40, behind the loop at train.py:10" in said
    assert "`--loop longest` lets it go on" in said
    assert stopped("longest", loop) == stopped(10, loop) == ""
    assert stopped(None, loop, outcome="finished") == ""


def test_nothing_is_said_of_what_was_seen_or_is_not_there() -> None:
    loop = trained(10, 3, followed_by=["/home/me/train.py:20"])
    assert "diagnosed: it takes most" in stopped(None, loop, trained(20, 1))
    assert stopped(None, trained(10, 3)) == ""


def test_a_loop_that_was_cut_off_is_as_long_as_its_data_tell() -> None:
    short = trained(10, 7.5, steps=750, last_ns=10)
    long = trained(20, 2, steps=200, last_ns=20, data_steps=375, planned_rounds=20)
    assert "the one at train.py:20 is diagnosed: it takes most, 75 s" in stopped(None, short, long)
    # As while it is held for trials.
    assert "train.py:20 is diagnosed" in stopped(None, short, long, outcome="running")
    # It ended by itself.
    assert "train.py:10 is diagnosed" in stopped(None, short, long, outcome="finished")
    long.last_ns = 5
    assert "train.py:10 is diagnosed" in stopped(None, short, long)
