"""Kinds of change: one table, and whoever tells them apart knows them all or raises."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pipediag.capture.replay.changes import model_settings
from pipediag.session import edits
from pipediag.session.edits import (
    Change,
    Edit,
    Insert,
    SetModel,
    adds_cache,
    as_written,
    changes_of,
    touched,
)
from pipediag.session.messages import (
    COMMANDS,
    FROM_CHILD,
    Command,
    Ended,
    FromChild,
    Prepare,
    Started,
    decode,
    encode,
)
from pipediag.trials.candidates import Candidate

some.register_type_strategy(float, some.floats(allow_nan=False))


@pytest.mark.parametrize("kind", [*get_args(FromChild), *get_args(Command)])
def test_a_message_comes_over_as_it_was(kind: type) -> None:
    @given(some.from_type(kind))
    def comes_over(message: Any) -> None:
        line = encode(message)
        assert line.index(b"\n") == len(line) - 1
        assert decode(line, FROM_CHILD | COMMANDS) == message

    comes_over()


def test_a_name_that_is_no_unicode_comes_over() -> None:
    told = Ended("raised", 1, "no such file: caf\udce9")
    assert decode(encode(told), FROM_CHILD) == told


PREPARE = b'{"is": "Prepare", "variant": "a", "check": null, "changes": '


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        (b'{"is": "News"}', FROM_CHILD),
        (b'{"is": "Started", "with": "more"}', FROM_CHILD),
        (b'{"is": "Prepared"}', FROM_CHILD),
        (encode(Prepare("base", (), None)), FROM_CHILD),
        (PREPARE + b'[{"do": "sing"}]}', COMMANDS),
        (PREPARE + b'[{"do": "remove"}]}', COMMANDS),
        (PREPARE + b"1}", COMMANDS),
        (encode(Started()), COMMANDS),
    ],
)
def test_what_the_other_process_does_not_know_is_none(line: bytes, kinds: Any) -> None:
    assert decode(line, kinds) is None


ONE_OF_EACH: tuple[Change, ...] = (
    edits.SetParameters("a", {"num_parallel_calls": -1}),
    Insert("a", "prefetch", {"buffer_size": -1}),
    edits.Remove("a"),
    edits.Move("a", "b"),
    edits.Replace("a", "interleave"),
    edits.SetOptions({"autotune.enabled": True}),
    SetModel({"jit_compile": True}),
    edits.PredictOnBatch("train.py", 30),
    edits.CompileCall("train.py", 31, "self.model"),
    edits.ExtractStep("train.py", 40, ("weight",)),
    edits.RewriteCall("a", "train.py", 30, "pairs"),
    edits.CompileFunction("train.py", 30, "train_step"),
)


def test_every_kind_is_here() -> None:
    assert {type(change) for change in ONE_OF_EACH} == set(get_args(Change))
    assert len({change.do for change in ONE_OF_EACH}) == len(ONE_OF_EACH)


@pytest.mark.parametrize("change", ONE_OF_EACH, ids=lambda change: change.do)
def test_every_consumer_knows_each(change: Change) -> None:
    assert changes_of([asdict(change)]) == (change,)
    assert touched([change]) <= {"elements", "options", "model"}
    candidate = Candidate(Edit("a", "a", (change,)), changes_hyper_parameter=False, safe=True)
    assert candidate.changes_model is isinstance(change, SetModel | edits.CompileFunction)


def test_a_cache_as_a_user_writes_it_is_not_filled_beforehand() -> None:
    filled = Insert("a", "cache", {"elements": 10})
    assert adds_cache(filled)
    assert as_written(filled) == Insert("a", "cache")
    for other in ONE_OF_EACH:
        assert not adds_cache(other)
        assert as_written(other) is other


def test_settings_of_the_model_that_contradict_each_other_are_refused() -> None:
    larger, compiled = SetModel({"steps_per_execution": 16}), SetModel({"jit_compile": True})
    assert model_settings([*ONE_OF_EACH[:6], larger, compiled, larger]) == {
        "steps_per_execution": 16,
        "jit_compile": True,
    }
    assert edits.contradiction([larger, compiled, larger], []) is None
    smaller = SetModel({"steps_per_execution": 8})
    assert "`steps_per_execution`" in str(edits.contradiction([larger, smaller], []))
