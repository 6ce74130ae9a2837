"""Work of the script's own before, between and after its steps, and waits for first batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pipediag.rules.epoch_start import SLOW_EPOCH_START, SLOW_SHUFFLE_FILL
from pipediag.rules.python_input import PYTHON_INPUT
from pipediag.rules.registry import yielding
from pipediag.rules.script_work import (
    MEMORY_GROWTH,
    SLOW_EPOCH_END,
    SLOWER_STEPS,
    WORK_BESIDE_TRAINING,
)
from pipediag.session.edits import AUTOTUNE, SetParameters
from pipediag.session.ledger import (
    IN_FRAMEWORK,
    OWN_LINE,
    READING,
    CallbackLine,
    EpochSeen,
    RunPart,
    callback_words,
)
from pipediag.session.loops import Loop
from pipediag.session.model import HostSample, Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import RunPartName
from tests.factories import make_host_samples, make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown, make_operation
from tests.rules.sessions import batch, cases, decides, only, run, saved_s, session_of, source

# Between epochs


def callback(seconds: float, name: str = "Saver", **overrides: Any) -> RunPart:
    at = {"file": "train.py", "line": 30, "count": 20, "loop_id": "loop_0"}
    return make_part("epoch_end", seconds, **{"what": callback_words(name), **at, **overrides})


def ended(*parts: RunPart, loop: Loop | None = None, **overrides: Any) -> Session:
    loops = [make_loop(), *([] if loop is None else [loop])]
    return make_session(run=make_run(*parts, **overrides), loops=loops)


def line(seconds: float, number: int, what: str = OWN_LINE) -> RunPart:
    return callback(seconds, what=what, line=number, count=None)


READS = make_loop(id="loop_1", kind="eager", role="reading", diagnosed=False, line=43)
EVALUATES = make_loop(id="loop_1", kind="eager", role="validation", diagnosed=False, line=31)


@cases(
    {
        "a callback": (ended(callback(40.0)), "fail", 30),
        "reads again": (
            ended(callback(40.0, what=READING, line=43), loop=READS, whole_s=80.0),
            "fail",
            43,
        ),
        "lets go of an iterator": (
            ended(line(9.0, 31), loop=EVALUATES, whole_s=80.0),
            "pass",
            None,
        ),
        "a function": (ended(line(6.0, 41, "in `draw`"), line(8.0, 52, "in `draw`")), "fail", 52),
        "once": (ended(callback(40.0, count=1)), "pass", None),
        "in each epoch": (
            ended(callback(0.4, count=1), whole_s=2.0, scope="epoch", epochs_planned=None),
            "fail",
            30,
        ),
        "unknown": (ended(callback(30.0, what=None, file=None, line=None)), "informative", 20),
        # As Keras's work between two epochs is seen at the line of `fit`.
        "the loop itself": (ended(line(30.0, 20)), "informative", 20),
    },
    "session, status, named",
)
def test_the_end_of_an_epoch(session: Session, status: str, named: int | None) -> None:
    finding = only(SLOW_EPOCH_END, session)
    assert (finding.status, finding.line) == (status, named)
    assert status == "pass" or finding.part == "epoch_end"


@pytest.mark.parametrize(
    ("row", "speedup", "saved"),
    [
        (callback(40.0), 5.0, 32.0),
        (callback(40.0, count=3), 3.0, 40.0 * 2 / 3),
        (callback(40.0, count=5), 5.0, 32.0),
        (callback(40.0, count=6), 3.0, 40.0 * 2 / 3),
        (callback(40.0, count=11), 11 / 3, 40.0 * 8 / 11),
        # That leaves something of each time, and all of it may go.
        (callback(40.0, "ModelCheckpoint", file=None, line=None), 100.0, 40.0),
    ],
)
def test_the_first_and_every_fifth_behind_it_are_left(
    row: RunPart, speedup: float, saved: float
) -> None:
    finding = only(SLOW_EPOCH_END, ended(row))
    assert finding.speedup_at_most == pytest.approx(speedup, abs=0.001)
    assert saved_s(finding) == pytest.approx(saved)


IN_SAVES = {"what": callback_words("Saves"), "file": "ranks.py"}


@pytest.mark.parametrize(
    ("lines", "rewritten"),
    [
        ([CallbackLine(line=15, function="rank", percent=60.0, **IN_SAVES)], True),
        ([CallbackLine(line=15, function="rank", percent=19.0, **IN_SAVES)], False),
        ([CallbackLine(line=15, function="save_all", percent=60.0, **IN_SAVES)], False),
        (
            [CallbackLine(line=12, function="rank", percent=40.0, in_framework=True, **IN_SAVES)],
            True,
        ),
        ([], False),
    ],
)
def test_a_callback_that_computes_may_go_as_a_whole(
    lines: list[CallbackLine], rewritten: bool
) -> None:
    session = ended(callback(40.0, "Saves"))
    run = session.run.but(callback_lines=lines)
    finding = only(SLOW_EPOCH_END, session.but(run=run))
    assert finding.status == "fail"
    assert saved_s(finding) == pytest.approx(40.0 if rewritten else 32.0)


# Before the training, between trainings and after them


def work(part: RunPartName, seconds: float, line: int | None = 9, **overrides: Any) -> RunPart:
    values = {"what": "in `read`", "file": "train.py", "line": line}
    return make_part(part, seconds, **{**values, **overrides})


BEFORE, BETWEEN, AFTER = "before_training", "between_loops", "after_training"
FRAMEWORK = {"what": "in `read`" + IN_FRAMEWORK}
NOWHERE = {"what": None, "file": None, "line": None}
OWN = {"what": OWN_LINE}


@pytest.mark.parametrize("part", [BEFORE, BETWEEN, AFTER])
@cases(
    {
        "lines of a function": ([(20.0, {}), (25.0, {"line": 11})], "fail", 11, 45.0),
        "neighbours": ([(9.0, OWN), (10.0, {**OWN, "line": 10})], "fail", 10, 19.0),
        "mostly the framework's": ([(19.9, {}), (20.0, FRAMEWORK)], "pass", None, None),
        "no place": ([(50.0, NOWHERE)], "pass", None, None),
        "nothing": ([], "pass", None, None),
    },
    "rows, status, named, saved",
)
def test_work_beside_the_steps(
    part: RunPartName,
    rows: list[tuple[float, dict[str, Any]]],
    status: str,
    named: int | None,
    saved: float | None,
) -> None:
    parts = [work(part, seconds, **overrides) for seconds, overrides in rows]
    finding = only(WORK_BESIDE_TRAINING, make_session(run=make_run(*parts), loops=[make_loop()]))
    assert (finding.status, finding.line) == (status, named)
    assert status == "pass" or finding.part == part
    assert saved_s(finding) == (None if saved is None else pytest.approx(saved))


@pytest.mark.parametrize(
    ("part", "seconds", "run_of", "status"),
    [
        (BEFORE, 9.9, {}, "informative"),
        (BEFORE, 1.9, {"whole_s": 4.0}, "informative"),
        # Between two trainings of an unknown number lies as much each time.
        (BETWEEN, 30.0, {"scope": "1000_steps"}, "fail"),
        (AFTER, 15.1, {}, "fail"),
        (AFTER, 14.9, {}, "pass"),
        (AFTER, 40.0, {"scope": "1000_steps"}, "pass"),
    ],
)
def test_how_much_work_matters(
    part: RunPartName, seconds: float, run_of: dict[str, Any], status: str
) -> None:
    row = work(part, seconds)
    session = make_session(run=make_run(row, **run_of), loops=[make_loop()])
    assert only(WORK_BESIDE_TRAINING, session).status == status


READER = make_operation("read", "TFRecordDataset", line=5)
IN_PARALLEL = (SetParameters("read", {"num_parallel_reads": AUTOTUNE}),)
GENERATOR = make_operation("gen", "from_generator", line=8)
LONG: dict[str, Any] = {"epochs_planned": 10}
"""Epochs of 6 s of steps, too long to be run through several times."""


def waits(
    seconds: float,
    *ops: Operation,
    ends: int = 19,
    input_wait: float = 1.0,
    count: int = 20,
    **overrides: Any,
) -> Session:
    """Each of twenty epochs waits for two seconds; the steps wait for nothing."""
    part = make_part(
        "epoch_start", seconds, file="train.py", line=20, count=count, loop_id="loop_0"
    )
    return session_of(
        *(ops or (READER,)),
        batch(),
        run=make_run(part, **overrides),
        loops=[make_loop(epoch_ends=ends)],
        breakdown=make_breakdown(input_wait=input_wait, device_compute=90.0),
    )


def buffer(size: int | None = None) -> Operation:
    parameters = {} if size is None else {"buffer_size": size}
    return make_operation("shuffle", "shuffle", line=9, parameters=parameters)


ARRAY = make_operation("slices", "from_tensor_slices", made_by_framework=True)
OF_KERAS = waits(40.0, ARRAY).but(pipeline=session_of(ARRAY).pipeline)
SMALLER = (SetParameters("shuffle", {"buffer_size": 500}),)


test_waits_at_the_start_of_epochs = decides(
    SLOW_EPOCH_START,
    {
        "files": (waits(40.0), ("fail", IN_PARALLEL)),
        "files that are zipped": (waits(40.0, READER, make_operation("zip", "zip")), "fail"),
        "a generator": (waits(90.0, GENERATOR), "fail"),
        "a large buffer": (waits(40.0, source(), buffer(5000), **LONG), ("fail", SMALLER)),
        "of Keras": (OF_KERAS, "informative"),
        "steps wait": (waits(40.0, input_wait=60.0), ("informative", IN_PARALLEL)),
        "one epoch": (waits(1.0, count=1, whole_s=4.0, scope="epoch"), ("fail", IN_PARALLEL)),
        "no end seen": (waits(5.0, ends=0), "inconclusive"),
    },
)


def test_rules_that_know_more_of_that_time_go_first() -> None:
    waiting = SLOW_EPOCH_START.finding("fail", "Start once.", part="epoch_start")
    knowing = SLOW_SHUFFLE_FILL.finding("fail", "Shuffle first.", part="epoch_start")
    of_steps = PYTHON_INPUT.finding("fail", "Rewrite it.")
    ours = (SLOW_EPOCH_START, [waiting])
    assert yielding([(SLOW_SHUFFLE_FILL, [knowing]), ours])[1][1][0].status == "informative"
    assert yielding([(PYTHON_INPUT, [of_steps]), ours])[1] == ours


# Memory and steps that grow from epoch to epoch, and what only scatters


GIB = 2**30


def with_epochs(steps_ms: Sequence[float] = (), held_mb: Sequence[float] = ()) -> Session:
    """A session whose epochs end every second, with a host sample at each end."""
    count = len(steps_ms) or len(held_mb)
    seen = [
        EpochSeen(number=n + 1, end_ms=1e3 * n, steps_ms=steps_ms[n] if steps_ms else 900.0)
        for n in range(count)
    ]
    sample = make_host_samples()[0]
    samples: list[HostSample] = [
        sample.but(at_ms=1e3 * n, rss_bytes=int(mb * 2**20), available_bytes=12 * GIB)
        for n, mb in enumerate(held_mb)
    ]
    ledger = make_run().but(whole_epochs=seen)
    return make_session(run=ledger, host_samples=samples)


def informs(session: Session) -> list[str]:
    found = [*run(MEMORY_GROWTH, session), *run(SLOWER_STEPS, session)]
    return [one.rule for one in found if one.status == "informative"]


@pytest.mark.parametrize(
    ("held_mb", "expected"),
    [
        ([600, 620, 641, 659, 680], ["memory-growth"]),
        ([600 + 4 * n for n in range(30)], ["memory-growth"]),
        # Too few epochs, too little, less each time, once, and up and down.
        ([600, 620, 640, 660], []),
        ([600, 605, 610, 615, 620], []),
        ([600, 680, 700, 705, 706], []),
        ([600, 601, 602, 690, 691], []),
        ([600, 700, 640, 720, 760], []),
        ([], []),
    ],
)
def test_memory_that_grows_evenly(held_mb: list[float], expected: list[str]) -> None:
    assert informs(with_epochs(held_mb=held_mb)) == expected


GROWING = [
    *(348, 824, 768, 662, 632, 595, 505, 739, 601, 785, 937, 927, 842, 1041, 1003, 1125, 1080),
    *(777, 986, 797, 1240, 1163, 1304, 1383, 1102, 620, 667, 1211, 699, 1085, 1246, 1594),
    *(1513, 1578, 1728, 1934, 1692),
]
"""Measured on a busy machine: a metric over all batches so far."""


@pytest.mark.parametrize(
    ("steps_ms", "expected"),
    [
        ([100, 110, 120, 130, 140], ["slower-steps"]),
        (GROWING, ["slower-steps"]),
        ([100, 110, 120, 130], []),
        ([100, 104, 108, 112, 116], []),
        # The first stretch and the last one overlap, or just don't.
        ([100, 160, 140, 140, 150, 150, 160, 160, 150, 300], []),
        ([100, 160, 140, 140, 150, 150, 160, 160, 161, 300], ["slower-steps"]),
    ],
)
def test_steps_that_get_slower(steps_ms: list[float], expected: list[str]) -> None:
    assert informs(with_epochs(steps_ms)) == expected
