"""What is said of a run in which nothing trained."""

from __future__ import annotations

import pytest

from pipediag.measures.verdict.sentences import NEEDS, no_loop_sentence
from pipediag.session.run import OtherProcesses, OtherUse, Script
from pipediag.vocabulary import LoopRole
from tests.factories import make_loop, make_session

STOPPED = Script(path="train.py", args=[], outcome="stopped")


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("training", "training"),
        ("validation", "validation"),
        ("evaluate", "`evaluate`"),
        ("predict", "`predict`"),
        ("adapt", "`adapt`"),
        ("preview", "a preview of some batches"),
        ("preparation", "a pass over a dataset before training"),
        ("other", "a loop over a dataset that does not train (no variable changes)"),
    ],
)
def test_a_loop_that_does_not_train_is_named_for_what_it_does(role: LoopRole, words: str) -> None:
    loop = make_loop(role=role, role_reason="no variable changes", steps=5, diagnosed=False)
    said = no_loop_sentence(make_session(script=STOPPED, loops=[loop]))
    assert said == (
        f"No training loop was seen. What was seen: {words} at train.py:20 (5 batches). {NEEDS}"
    )


def test_four_things_that_were_seen_are_named_and_the_rest_counted() -> None:
    uses = [OtherUse(what=f"`u{n}`", file=None, line=None, count=n) for n in range(1, 4)]
    loops = [make_loop(role="predict", diagnosed=False, steps=n) for n in range(2)]
    session = make_session(script=STOPPED, other_uses=uses, loops=loops)
    assert "`u1` (once); `u2` (2 times); `u3` (3 times); `predict` at train.py:20 (0 batches) " in (
        no_loop_sentence(session)
    )
    assert "(0 batches) and 1 more. Pipediag" in no_loop_sentence(session)
    four = session.model_copy(update={"loops": loops[:1]})
    assert "(0 batches). Pipediag" in no_loop_sentence(four)


def test_a_tensorflow_that_is_too_old_is_the_reason() -> None:
    session = make_session(script=STOPPED, loops=[])
    old = session.environment.model_copy(update={"tensorflow": "2.13.1"})
    assert no_loop_sentence(session.model_copy(update={"environment": old})) == (
        "TensorFlow 2.13.1 is too old for pipediag, which measures 2.14 and newer. The script ran "
        "without being measured."
    )


@pytest.mark.parametrize(
    ("count", "cpu_s", "words"),
    [(1, 1.0, "It started another process, with 1 s"), (3, 9.0, "It started 3 other processes, w")],
)
def test_processes_that_were_busy_for_a_second_may_have_trained(
    count: int, cpu_s: float, words: str
) -> None:
    busy = OtherProcesses(count=count, cpu_s=cpu_s)
    said = no_loop_sentence(make_session(script=STOPPED, loops=[], other_processes=busy))
    assert words in said
    assert NEEDS not in said


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("It ran out of memory", "ended early: It ran out of memory. The"),
        ("Why?", "ended early: Why? The"),
        ("Stop!", "ended early: Stop! The"),
    ],
)
def test_how_it_ended_is_one_sentence(detail: str, words: str) -> None:
    script = Script(path="t.py", args=[], outcome="raised", status=1, detail=detail)
    assert words in no_loop_sentence(make_session(script=script, loops=[]))


def test_a_run_that_was_cut_off_is_told_how_far_it_came() -> None:
    late = Script(path="t.py", args=[], outcome="timed-out", detail="It took too long.")
    said = no_loop_sentence(make_session(script=late, loops=[]))
    assert "It had imported TensorFlow by then; no step of a training was recorded yet." in said
