"""The verdict: bottleneck, line, confidence, and the part of the run that weighs most."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.run import LoopTime
from pipediag.measures.verdict.decision import NOTHING_TRAINED, decide, decide_input_alone
from pipediag.measures.verdict.sentences import (
    Culprit,
    costs_most,
    eager_culprit,
    filling_shuffle,
    first_batches_sentence,
    input_culprit,
    python_culprit,
)
from pipediag.session.ledger import PAUSES
from pipediag.session.loops import Ceiling, Differential, Loop, Perturbation, Share
from pipediag.session.model import Host, HotLine, Script, Session
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import EagerStep, NestedCall
from pipediag.session.recording import OtherUse
from tests import factories
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.ledgers import make_part, make_run, make_waits
from tests.records import make_breakdown, make_input_wait, make_operation, make_pipeline, make_steps

STOPPED = Script(path="train.py", args=[], outcome="stopped")
MEASURED_ALONE = Differential(step_ms=3.0, ci95_ms=(2.9, 3.1), steps=30, input_share_percent=70.0)


def session(**overrides: Any) -> Session:
    """An input-bound one, whose loop was not measured on a repeated batch."""
    values: dict[str, Any] = {
        "script": STOPPED,
        "perturbation": Perturbation(baseline_step_ms=10.0, profiled_step_ms=11.0, ratio=1.1),
        "differential": None,
        "ceiling": Ceiling(speedup_if_input_free=3.333, next_bottleneck="device_compute"),
    }
    return make_session(**{**values, **overrides})


def with_interval(low: float, percent: float, high: float) -> dict[Any, Share]:
    shares = make_breakdown(input_wait=percent, device_compute=95.0 - percent)
    wait = shares["input_wait"].but(ci95_percent=(low, high))
    return {**shares, "input_wait": wait}


@pytest.mark.parametrize(
    ("percents", "bottleneck", "severity"),
    [
        ({"input_wait": 1.0, "device_compute": 80.0, "dispatch": 15.0}, "compute", "ok"),
        ({"input_wait": 10.0, "device_compute": 80.0, "dispatch": 5.0}, "compute", "moderate"),
        ({"device_compute": 30.0, "dispatch": 40.0, "python": 25.0}, "overhead", "high"),
        ({"device_compute": 20.0, "device_copy": 50.0, "collective": 20.0}, "transfer", "high"),
        ({"device_compute": 45.0, "dispatch": 44.0}, "balanced", "high"),
        ({"device_compute": 20.0, "dispatch": 20.0}, "inconclusive", "unknown"),
        # A profiled step takes 1.1 times as long: 37 to 47 % against 46 to 56.
        ({"device_compute": 43.0, "dispatch": 51.0}, "balanced", "high"),
        ({"device_compute": 35.0, "dispatch": 63.0}, "overhead", "high"),
    ],
)
def test_what_bounds_the_step(percents: dict[str, float], bottleneck: str, severity: str) -> None:
    verdict = decide(session(breakdown=make_breakdown(**percents)))
    assert (verdict.bottleneck, verdict.severity) == (bottleneck, severity)


@pytest.mark.parametrize(
    ("interval", "bottleneck", "confidence"),
    [
        ((18.0, 22.0, 26.0), "compute", "medium"),
        ((14.0, 18.0, 22.0), "compute", "medium"),
        ((3.0, 6.0, 9.0), "compute", "medium"),
        ((3.0, 12.0, 22.0), "inconclusive", "low"),
        ((21.0, 22.0, 23.0), "input", "high"),
    ],
)
def test_an_interval_that_straddles_a_limit_says_so(
    interval: tuple[float, float, float], bottleneck: str, confidence: str
) -> None:
    verdict = decide(session(breakdown=with_interval(*interval)))
    assert (verdict.bottleneck, verdict.confidence) == (bottleneck, confidence)
    says_so = any("interval of the input wait" in reason for reason in verdict.reasons)
    assert says_so is (confidence != "high")


def test_no_training_loop_says_what_was_seen_and_what_is_needed() -> None:
    used = OtherUse(what="`tf.compat.v1.Session.run`", file="tf1.py", line=9, count=12)
    evaluated = make_loop(role="evaluate", diagnosed=False, line=30, steps=5)
    verdict = decide(session(loops=[evaluated], other_uses=[used]))
    assert verdict.bottleneck == "inconclusive"
    assert "`tf.compat.v1.Session.run` at tf1.py:9 (12 times)" in verdict.summary
    assert "`evaluate` at train.py:30 (5 batches)" in verdict.summary
    assert "Pipediag needs a training loop" in verdict.summary


def test_a_profile_that_is_missing_leaves_the_consumer_open() -> None:
    missing = Perturbation(
        baseline_step_ms=10.0, profiled_step_ms=None, ratio=None, missing="No step was profiled."
    )
    verdict = decide(
        session(breakdown=make_breakdown(input_wait=1.0, python=0.0), perturbation=missing)
    )
    assert verdict.bottleneck == "inconclusive"
    assert "Not input-bound" in verdict.summary
    assert any("No step was profiled." in reason for reason in verdict.reasons)


def test_doubts_lower_the_confidence() -> None:
    shaken = session(steps=make_steps(count=8, stable=False))
    assert decide(shaken).confidence == "low"
    assert decide(session(steps=make_steps(count=8))).confidence == "medium"
    assert decide(session(input_wait=make_input_wait(method="trace"))).confidence == "low"
    lock = make_input_wait(contention="python")
    assert decide(session(input_wait=lock)).confidence == "medium"
    assert decide(session(input_wait=lock, differential=MEASURED_ALONE)).confidence == "high"


@pytest.mark.parametrize(("percent", "line"), [(86.0, 16), (30.0, None)])
def test_a_prediction_that_is_most_of_each_step_is_named(percent: float, line: int | None) -> None:
    call = NestedCall(what="predict", file="train.py", line=16, percent=percent, ms=70.0)
    loop = make_loop(keras=None, kind="tf_function", from_python=True, nested=[call])
    shares = make_breakdown(device_compute=30.0, dispatch=45.0, python=20.0)
    verdict = decide(session(breakdown=shares, loops=[loop], host=None))
    assert (verdict.bottleneck, verdict.line) == ("overhead", line)
    said = " `predict` at train.py:16 takes 86 % of each step."
    assert verdict.summary.endswith(said) is (line is not None)


def between_epochs(**time: Any) -> Session:
    """A loop that waits for first batches; its steps are launching operations."""
    shares = make_breakdown(input_wait=2.0, device_compute=10.0, dispatch=88.0)
    ops = [
        make_operation("source", "from_tensor_slices", line=10),
        make_operation("map", "map", line=13, parent_ids=["source"]),
        make_operation("shuffle", "shuffle", line=14, parent_ids=["map"]),
    ]
    return session(
        loops=[make_loop(epoch_ends=4)],
        run=make_waits(**time),
        breakdown=shares,
        pipeline=make_pipeline(ops=ops, bottleneck_op_id=None),
        ceiling=Ceiling(speedup_if_input_free=1.0204, next_bottleneck="dispatch"),
    )


def test_waits_between_epochs_that_outweigh_the_steps_are_the_verdict() -> None:
    verdict = decide(between_epochs())
    assert (verdict.bottleneck, verdict.severity, verdict.confidence) == ("input", "high", "high")
    assert "at most 4.95x as fast" in verdict.summary
    assert (verdict.line, verdict.op_id) == (14, "shuffle")


def test_a_pause_as_an_iterator_is_freed_is_no_wait_for_a_batch() -> None:
    """Of 100 s, 25 are waits, and 40 pauses."""
    pauses = make_part("epoch_start", 40.0, loop_id="loop_0", what=PAUSES)
    waits = make_part("epoch_start", 25.0, loop_id="loop_0", count=10)
    time = LoopTime(30.0, 5.0, 22.5, 0.0, first_batch_ms=2500.0, ends_seen=9)
    sentence = first_batches_sentence(make_run(pauses, waits), time, None)
    assert sentence.startswith("25 % of the run")


def test_an_interval_of_the_step_that_says_nothing_does_not_hide_them() -> None:
    waiting = between_epochs()
    for breakdown in (with_interval(0.0, 99.0, 100.0), None):
        unknown = waiting.but(breakdown=breakdown)
        assert decide(unknown).bottleneck == "input"


@pytest.mark.parametrize(
    "time",
    [
        # 88 % of 16 s are more than 4 s.
        {"steps_s": 16.0, "first_batches_s": 4.0, "between_s": 0.0},
        # Validation takes most, and is no input.
        {"steps_s": 1.0, "first_batches_s": 3.0, "between_s": 16.0},
    ],
)
def test_other_waits_leave_the_verdict_to_the_step(time: dict[str, float]) -> None:
    assert decide(between_epochs(**time)).bottleneck == "overhead"


def test_a_repeated_batch_that_says_otherwise_is_a_doubt() -> None:
    shares = make_breakdown(input_wait=1.0, device_compute=90.0)
    ceiling = Ceiling(speedup_if_input_free=1.0101, next_bottleneck="device_compute")
    wait = make_input_wait(
        native_percent=1.0,
        native_ci95_percent=(0.5, 1.5),
        contested_by_percent=26.0,
        disagreement="On a repeated batch the step is 26 % shorter.",
    )
    verdict = decide(session(breakdown=shares, ceiling=ceiling, input_wait=wait))
    assert "at most" not in verdict.summary
    assert wait.disagreement in verdict.reasons
    assert verdict.confidence == "medium"
    same = make_input_wait(contested_by_percent=85.0, disagreement="It is 85 % shorter.")
    found = decide(
        session(input_wait=same, differential=MEASURED_ALONE.but(input_share_percent=85.0))
    )
    assert found.confidence == "high"
    assert "at most 6.67x as fast" in found.summary


def test_what_was_measured_while_a_cache_filled_says_so() -> None:
    filled = session(loops=[make_loop(filled_cache_op_id="map_0")])
    verdict, other = decide(filled), decide(session())

    assert verdict.summary.startswith(other.summary)
    assert "fills the cache at train.py:12" in verdict.summary
    assert (verdict.confidence, other.confidence) == ("low", "high")
    assert any("fills the cache at train.py:12" in reason for reason in verdict.reasons)


ON_MAIN = HotLine(file="train.py", line=40, function="on_batch", percent=60.0, thread="main")


def test_a_line_of_python_is_blamed_for_overhead_alone() -> None:
    host = make_host(hot_python=[ON_MAIN])
    # Python is more than dispatch in both.
    overhead = make_breakdown(device_compute=30.0, python=50.0, dispatch=5.0)
    compute = make_breakdown(device_compute=70.0, python=10.0, dispatch=5.0)
    assert decide(session(breakdown=overhead, host=host)).line == 40
    verdict = decide(session(breakdown=compute, host=host))
    assert (verdict.bottleneck, verdict.file, verdict.line) == ("compute", None, None)


def test_more_unknown_than_any_cause_names_none() -> None:
    shares = make_breakdown(input_wait=2.0, device_compute=30.0, dispatch=19.0, python=15.0)
    assert shares["unattributed"].percent == 34.0
    # Dispatch and Python are one group, larger than what is unknown.
    assert decide(session(breakdown=shares)).bottleneck == "balanced"
    less = make_breakdown(input_wait=2.0, device_compute=30.0, dispatch=17.0, python=15.0)
    assert less["unattributed"].percent == 36.0
    verdict = decide(session(breakdown=less))
    assert (verdict.bottleneck, verdict.severity, verdict.confidence) == (
        "inconclusive",
        "unknown",
        "low",
    )
    assert "36 % of the step could not be attributed" in verdict.summary
    assert (verdict.file, verdict.line, verdict.op_id) == (None, None, None)


def test_the_run_is_said_first_and_the_step_among_the_reasons() -> None:
    verdict = decide(factories.make_session(run=factories.make_run()))

    assert verdict.summary.startswith("50 % of the run")
    assert "the callback Save at train.py:14, 10 times" in verdict.summary
    assert verdict.reasons[0].startswith("70 % of each step")
    assert verdict.where == "epoch_end"
    assert (verdict.where_line, verdict.severity) == (14, "high")
    assert verdict.bottleneck == "input"


@pytest.mark.parametrize("outcome", ["raised", "killed", "timed-out"])
def test_of_a_script_that_failed_before_its_steps_that_is_said_first(outcome: Any) -> None:
    script = Script(path="t.py", args=[], outcome=outcome, status=1, detail="ValueError: no rows")
    parts = [factories.make_part("before_training", 12.0, what="in `parse`", line=7)]
    session = factories.make_session(
        run=factories.make_run(parts=parts),
        script=script,
        steps=None,
        steps_missing="Only 0 steps were seen.",
        breakdown=None,
    )

    verdict = decide(session)

    if outcome == "timed-out":
        assert verdict.where == "before_training"
        return
    assert "ValueError: no rows" in verdict.summary
    assert verdict.reasons[0] == "No verdict: Only 0 steps were seen."
    assert (verdict.where, verdict.bottleneck) == (None, "inconclusive")


def test_a_fill_of_all_the_data_is_the_verdict_before_an_epoch_has_ended() -> None:
    """Ten waits of 8 s, of which one was seen, beside 20 s of steps."""
    gone = {"self_ms_per_step": None, "elements": None}
    ops = [
        make_operation("source", "from_tensor_slices", **gone),
        make_operation("map", parent_ids=["source"], line=12, **gone),
        make_operation("shuffle", "shuffle", parent_ids=["map"], line=14),
    ]
    loop = factories.make_loop()
    parts = [
        factories.make_part("epoch_start", 80.0, 100.0, line=20, loop_id=loop.id, count=10),
        factories.make_part("steps", 20.0, 100.0, line=20, loop_id=loop.id),
    ]

    verdict = decide(
        factories.make_session(
            loops=[loop],
            pipeline=make_pipeline(ops=ops),
            steps=make_steps(fill_ms=8000.0),
            run=factories.make_run(parts=parts, projected_total_s=100.0),
        )
    )

    assert (verdict.bottleneck, verdict.where, verdict.line) == ("input", "epoch_start", 14)
    assert verdict.confidence == "medium"
    assert "at most 3.57x as fast" in verdict.summary
    assert any(reason.startswith("No end of an epoch was seen") for reason in verdict.reasons)


def test_it_says_what_the_pipeline_gives_and_what_costs_most() -> None:
    verdict = factories.make_verdict(where="epoch_end")
    session = factories.make_session(verdict=verdict)

    decided = decide_input_alone(session)

    assert f"{session.steps.mean_ms:.3g} ms per batch" in decided.summary
    assert "`map` at train.py:12" in decided.summary
    assert (decided.bottleneck, decided.severity) == ("input", "unknown")
    assert decided.reasons[-1] == NOTHING_TRAINED
    assert decided.where is None


HOT = make_host(
    hot_python=[HotLine(file="rows.py", line=6, function="rows", percent=80.0, thread="source")]
)


def named(
    op: Operation | None, host: Host | None = HOT, loop: Loop | None = None
) -> Culprit | None:
    pipeline = make_pipeline(ops=[op] if op else [], bottleneck_op_id=op.id if op else None)
    loops = [loop] if loop is not None else []
    return input_culprit(make_session(pipeline=pipeline, loops=loops, host=host))


def fitted(**keras: Any) -> Loop:
    return make_loop(keras=make_keras(**keras))


def test_a_generator_is_named_by_the_line_that_runs_and_else_by_its_call() -> None:
    generator = make_operation("g", "from_generator", file="train.py", line=27)
    assert named(generator) == Culprit("the generator of `from_generator`", "rows.py", 6, "g")
    assert named(generator, host=None) == Culprit("`from_generator`", "train.py", 27, "g")
    few = make_host(hot_python=[HOT.hot_python[0].but(percent=7.0)])
    assert named(generator, host=few) == Culprit("`from_generator`", "train.py", 27, "g")


def test_python_of_which_no_line_leads_is_named_by_its_function() -> None:
    generator = make_operation("g", "from_generator", file="train.py", line=27)
    for percents, line in (((60.0, 30.0), 6), ((30.0, 28.0, 25.0), 3)):
        hot = [
            HOT.hot_python[0].but(line=6 + at, function_line=3, percent=percent)
            for at, percent in enumerate(percents)
        ]
        culprit = named(generator, make_host(hot_python=hot))
        assert (culprit.file, culprit.line) == ("rows.py", line)


def test_data_that_python_makes_for_keras_is_named_by_its_class() -> None:
    data = {"data_adapter": "PyDatasetAdapter", "source_file": "data.py", "source_line": 3}
    op = make_operation("g", "from_generator")
    assert named(op, loop=fitted(**data, source="Rows")) == Culprit("`Rows`", "rows.py", 6, "g")
    unseen = named(op, host=None, loop=fitted(**data, source="Rows"))
    assert unseen == Culprit("`Rows`", "data.py", 3, "g")
    unnamed = Culprit("the Python source", "data.py", 3, None)
    assert named(None, host=None, loop=fitted(**data, source=None)) == unnamed
    assert named(None, loop=fitted(**data, source="Rows")) == Culprit("`Rows`", "rows.py", 6, None)


def test_what_a_framework_made_is_named_by_what_it_was_given() -> None:
    op = make_operation("m", "map", file="keras.py", line=900, made_by_framework=True)
    data = {"source_file": "train.py", "source_line": 8}
    assert named(op, loop=fitted(**data, source="ndarray")) == Culprit(
        "`ndarray`", "train.py", 8, "m"
    )
    assert named(op, loop=fitted(**data, source=None)) == Culprit("`map`", "train.py", 8, "m")
    own = Culprit("`map`", "keras.py", 900, "m")
    assert named(op, loop=fitted(source_file=None)) == named(op, loop=None) == own


def shuffled(**shuffle: Any) -> list[Operation]:
    return [
        make_operation("read", "flat_map", line=1, latency_ms_per_step=2.0),
        make_operation("map", "map", line=2, parent_ids=["read"], latency_ms_per_step=None),
        make_operation("first", "shuffle", line=3, parent_ids=["map"]),
        make_operation("take", "take", line=4, parent_ids=["first"], latency_ms_per_step=9.0),
        make_operation("last", "shuffle", line=5, parent_ids=["take"], **shuffle),
    ]


def piped(ops: list[Operation]) -> Session:
    return make_session(pipeline=make_pipeline(ops=ops))


def test_a_shuffle_fills_with_what_costs_most_above_it() -> None:
    fill = filling_shuffle(piped(shuffled()))
    maker = Culprit("`flat_map`", "train.py", 1, "read")
    assert fill == Culprit("`shuffle`", "train.py", 5, "last", filled_by=maker)
    frameworks = filling_shuffle(piped(shuffled(made_by_framework=True)))
    assert frameworks == Culprit("`shuffle`", "train.py", 3, "first", filled_by=maker)


@pytest.mark.parametrize("other", ["dispatch", "compile", "device_wait"])
def test_python_is_named_where_it_is_clearly_the_largest_overhead(other: str) -> None:
    host = make_host(hot_python=[ON_MAIN])
    on_batch = Culprit("`on_batch`", "train.py", 40)
    assert python_culprit(make_breakdown(**{"python": 30.0, other: 27.0}), host) == on_batch
    assert python_culprit(make_breakdown(**{"python": 30.0, other: 29.0}), host) is None
    assert python_culprit(make_breakdown(python=30.0), HOT) is None
    rare = make_host(hot_python=[ON_MAIN.but(percent=0.8)])
    assert python_culprit(make_breakdown(python=30.0), rare) is None


def test_a_step_that_runs_eagerly_is_named_where_overhead_takes_most() -> None:
    step = EagerStep("train_step", "train.py", 14)
    assert eager_culprit(make_loop(eager_steps=[step], step_functions=[])) == Culprit(
        "`train_step`", "train.py", 14
    )
    assert eager_culprit(make_loop(eager_steps=[step], step_functions=["train.py:14 step"])) is None


def test_what_costs_about_as_much_is_named_with_it() -> None:
    ops = [
        make_operation("decode", "map", file="train.py", line=12),
        make_operation("augment", "map", file="train.py", line=13),
        make_operation("batch", "batch", file="train.py", line=14),
    ]
    pipeline = make_pipeline(ops=ops, bottleneck_op_id="decode", tied_op_ids=["augment"])
    culprit = input_culprit(make_session(pipeline=pipeline, loops=[], host=None))
    assert (culprit.op_id, culprit.line) == ("decode", 12)
    assert [(one.op_id, one.line) for one in culprit.tied] == [("augment", 13)]
    assert all(place in costs_most(culprit) for place in ("train.py:12", "train.py:13"))
