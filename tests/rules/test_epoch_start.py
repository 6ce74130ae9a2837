"""Waits for the first batch of each epoch that are not a shuffle filling with costly elements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipediag.rules.epoch_start import SLOW_EPOCH_START, SLOW_SHUFFLE_FILL
from pipediag.rules.python_input import PYTHON_INPUT
from pipediag.rules.registry import yielding
from pipediag.session.edits import AUTOTUNE, Edit, Insert, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_loop, make_loop_time
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown, make_operation
from tests.rules.sessions import batch, cases, decided, session_of, source

READER = make_operation("read", "TFRecordDataset", line=5)
READS = (SetParameters("read", {"num_parallel_reads": AUTOTUNE}),)
GENERATOR = make_operation("gen", "from_generator", line=8)
LONG: dict[str, Any] = {"epochs_planned": 10}
"""Epochs of 6 s of steps, too long to be run through several times."""
THROUGH = Edit(
    id="epoch-start:repeat:batch",
    label="one pipeline through all epochs, by a repeat behind the batch in line 9",
    changes=(Insert("batch", "repeat"),),
    caveat="Measured from the second step of an epoch to the second of the next.",
    whole_epoch=True,
    runs_through=True,
)


def waits(
    seconds: float,
    *ops: Operation,
    first_ms: float = 2000.0,
    ends: int = 19,
    input_wait: float = 1.0,
    count: int = 20,
    **overrides: Any,
) -> Session:
    """Each of twenty epochs waits for two seconds; the steps wait for nothing."""
    time = make_loop_time(first_batch_ms=first_ms, epoch_ends_seen=ends)
    part = make_part(
        "epoch_start", seconds, file="train.py", line=20, count=count, loop_id="loop_0"
    )
    return session_of(
        *(ops or (READER,)),
        batch(),
        run=make_run(part, **overrides),
        loops=[make_loop(time=time)],
        breakdown=make_breakdown(input_wait=input_wait, device_compute=90.0),
    )


def buffer(size: int | None = None) -> Operation:
    parameters = {} if size is None else {"buffer_size": size}
    return make_operation("shuffle", "shuffle", line=9, parameters=parameters)


def reader(**parameters: Any) -> Operation:
    return replace(READER, parameters=parameters)


ARRAY = make_operation("slices", "from_tensor_slices", made_by_framework=True)
OF_KERAS = waits(40.0, ARRAY).model_copy(
    update={"pipeline": session_of(ARRAY).pipeline},
)
SMALLER = (SetParameters("shuffle", {"buffer_size": 500}),)


@cases(
    {
        "files": (waits(40.0), ("fail", READS)),
        "parallel reads": (
            waits(20.0, reader(num_parallel_reads=-1), first_ms=1000.0),
            ("fail", THROUGH.changes),
        ),
        "a generator": (waits(90.0, GENERATOR, first_ms=4500.0), ("fail", None)),
        "a large buffer": (waits(40.0, source(), buffer(5000), **LONG), ("fail", SMALLER)),
        "a buffer of short epochs": (
            waits(20.0, source(), buffer(5000), first_ms=1000.0),
            ("fail", THROUGH.changes),
        ),
        "of Keras": (OF_KERAS, ("informative", None)),
        "steps wait": (waits(40.0, input_wait=60.0), ("informative", READS)),
        # A step waits for 6 ms of its 10, and a generator that loads first for ten times as long.
        "loads first": (
            waits(40.0, GENERATOR, first_ms=61.0, input_wait=60.0, count=2000),
            ("fail", None),
        ),
        "10 %": (waits(40.0, first_ms=527.0), ("fail", READS)),
        "5 %": (waits(40.0, first_ms=264.0), ("informative", READS)),
        "one epoch": (waits(1.0, count=1, whole_s=4.0, scope="epoch"), ("fail", READS)),
        "no end seen": (waits(5.0, ends=0), ("inconclusive", None)),
    },
    "session, expected",
)
def test_waits_at_the_start_of_epochs(session: Session, expected: object) -> None:
    assert decided(SLOW_EPOCH_START, session) == expected


def test_rules_that_know_more_of_that_time_go_first() -> None:
    waiting = SLOW_EPOCH_START.finding("fail", "Start once.", part="epoch_start")
    knowing = SLOW_SHUFFLE_FILL.finding("fail", "Shuffle first.", part="epoch_start")
    of_steps = PYTHON_INPUT.finding("fail", "Rewrite it.")
    ours = (SLOW_EPOCH_START, [waiting])
    assert yielding([(SLOW_SHUFFLE_FILL, [knowing]), ours])[1][1][0].status == "informative"
    assert yielding([(PYTHON_INPUT, [of_steps]), ours])[1] == ours
