from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipediag.runner.trials_of_run import PREPARE_LIMIT_S, ChildExecutor, TrialsOfRun
from pipediag.session.edits import Insert, Remove, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.messages import (
    Answer,
    BlockRun,
    Command,
    Prepare,
    Prepared,
    RunBlock,
    TrialsAwaited,
    VariantRefused,
)
from pipediag.session.model import Session
from pipediag.session.recorded_loops import Evaluation
from pipediag.trials import ExecutorLostError, Variant, VariantRefusedError
from pipediag.trials.candidates import epoch_worth_trying
from tests.factories import make_finding, make_keras, make_loop, make_session
from tests.ledgers import make_part, make_run, make_waits, validation
from tests.records import make_breakdown, make_input_wait, make_operation, make_pipeline, make_steps
from tests.trials.bench import make_edit


def trials_of(session: Session, **options: Any) -> TrialsOfRun:
    given = {"budget_s": 60.0, **options}
    return TrialsOfRun(lambda: session, lambda _event: None, **given)


def refuses(command: Command, _limit_s: float) -> Answer:
    return VariantRefused(command.variant, "It can't be built.")


class Answers:
    """Builds every variant, and pulls ten batches of each in 0.1 s."""

    def __init__(self) -> None:
        self.prepared: list[str] = []

    def __call__(self, command: Command, _limit_s: float) -> Answer:
        match command:
            case RunBlock(name, alone=True):
                return BlockRun(name, batches=10, examples=320, elapsed_ns=10**8)
            case Prepare(name):
                self.prepared.append(name)
                return Prepared(name)
        raise AssertionError(command)


def waiting(more_to_come: bool = False, alone: bool = False, since_ns: int = 0) -> TrialsAwaited:
    return TrialsAwaited("loop_0", alone=alone, more_to_come=more_to_come, since_ns=since_ns)


def test_beside_a_pulled_pipeline_stands_what_the_rest_of_the_step_took() -> None:
    """Its time alone is 4 ms; with the pipeline, which takes CPUs from it, it took 8."""
    wait = make_input_wait(native_percent=20.0, method="differential", contention="cpu")
    session = make_session(
        input_wait=wait,
        breakdown=make_breakdown(input_wait=60.0, device_compute=40.0),
        findings=[make_finding(edit=make_edit("a"))],
    )

    tried = trials_of(session)
    tried(waiting(alone=True, since_ns=time.monotonic_ns()), Answers())
    assert tried.fault is None
    assert "the 8.0 ms that the rest" in " ".join(tried.outcomes["loop_0"].trials["a"].caveats)


@pytest.mark.parametrize(("kind", "tried_now"), [("keras", []), ("distributed", ["loop_0"])])
def test_a_loop_that_is_over_is_left_to_a_second_run_that_can_hold_it(
    kind: Any, tried_now: list[str]
) -> None:
    loops = [make_loop(kind=kind)]
    session = make_session(findings=[make_finding(edit=make_edit("a"))], loops=loops)
    tried = trials_of(session, rerun=True)
    tried(waiting(alone=True, since_ns=time.monotonic_ns()), refuses)

    assert (tried.fault, list(tried.outcomes)) == (None, tried_now)


def of_evaluation(**overrides: Any) -> Finding:
    """A finding whose edit changes what `loop_1` reads."""
    edit = replace(make_edit("e"), loop_id="loop_1")
    return make_finding(edit=edit, part="evaluation", **overrides)


def test_the_pipeline_of_an_evaluation_is_tried_in_what_its_training_has_left() -> None:

    findings = [make_finding(edit=make_edit("a")), of_evaluation()]
    tried = trials_of(make_session(findings=findings, loops=[make_loop(), validation()]))
    since_ns = time.monotonic_ns()
    asked = TrialsAwaited("loop_1", alone=True, more_to_come=False, since_ns=since_ns)
    tried(asked, answers := Answers())

    assert tried.fault is None
    assert answers.prepared == ["base", "e"]
    outcome = tried.outcomes["loop_1"]
    assert outcome.run.loop_id == "loop_1"
    assert outcome.run.consumer == "pipeline alone"
    trial = outcome.trials["e"]
    assert "Nothing is evaluated for a trial" in " ".join(trial.caveats)
    assert "the 2.0 ms that the rest of the step took" in " ".join(trial.caveats)
    assert tried.budget_s < 60.0


@pytest.mark.parametrize("more_to_come", [False, True])
def test_epochs_whose_waits_are_too_long_name_the_budget_that_they_need(more_to_come: bool) -> None:
    """Seven of 10 s, of which whole epochs may take 85 %; they are not halved for a later loop."""
    loop = make_loop(epoch_ends=2, keras=make_keras(epochs=12, steps_per_epoch=20))
    edit = make_edit("cache", whole_epoch=True)
    session = make_session(
        loops=[loop], run=make_waits(20.0, each_s=10.0), findings=[make_finding(edit=edit)]
    )
    tried = trials_of(session)
    tried(waiting(more_to_come=more_to_come, since_ns=time.monotonic_ns()), refuses)

    assert tried.fault is None
    outcome = tried.outcomes["loop_0"]
    assert "`--budget 83`" in str(outcome.trials["cache"].reason)


@pytest.mark.parametrize(
    ("each_s", "more_to_come", "evaluation_s", "part_s"),
    [
        (10.0, True, None, 120.0),
        (10.0, True, 1.0, 90.0),
        (13.0, True, 1.0, 120.0),
        (13.0, True, 99.0, 45.0),
        (5.0, True, None, 61.8),
        (1.0, True, None, 60.0),
        (1.0, False, None, 120.0),
        (20.0, True, None, 60.0),
    ],
)
def test_whole_epochs_get_what_they_need_and_some_more(
    each_s: float, more_to_come: bool, evaluation_s: float | None, part_s: float
) -> None:
    loop = make_loop(epoch_ends=2, keras=make_keras(epochs=12, steps_per_epoch=20))
    found = [make_finding(edit=make_edit("cache", whole_epoch=True))]
    if evaluation_s is not None:
        found.append(make_finding(edit=replace(make_edit("other"), loop_id="loop_1")))
    waits = make_waits(2 * each_s, each_s=each_s)
    waits.parts.append(make_part("evaluation", evaluation_s or 0.0))
    session = make_session(loops=[loop], run=waits, findings=found)
    tried = trials_of(session, budget_s=120.0)
    asked = waiting(more_to_come=more_to_come, since_ns=time.monotonic_ns())
    budget_s, _ = tried._share_of_budget(asked, session, epoch_worth_trying(session))
    assert budget_s == pytest.approx(part_s, rel=0.01)


@pytest.mark.parametrize(
    ("spare_s", "steps_s", "enough"),
    [(120.0, 20.0, True), (20.0, 20.0, False), (120.0, 900.0, False)],
)
def test_more_time_is_spared_for_waits_that_take_much_of_the_run(
    spare_s: float, steps_s: float, enough: bool
) -> None:
    """A wait of 20 s needs 165 s for three rounds."""
    loop = make_loop(epoch_ends=2, keras=make_keras(epochs=12, steps_per_epoch=20))
    found = [make_finding(edit=make_edit("cache", whole_epoch=True))]
    session = make_session(loops=[loop], run=make_waits(40.0, each_s=20.0), findings=found)
    run = session.run
    rows = [*run.parts, make_part("startup", steps_s)]
    whole_s = sum(one.seconds for one in rows)
    run = run.but(parts=[one.but(percent=100.0 * one.seconds / whole_s) for one in rows])
    session = session.but(run=run)
    tried = trials_of(session, budget_s=100.0)
    tried.spare_s = spare_s
    asked = waiting(since_ns=time.monotonic_ns())
    budget_s, why = tried._share_of_budget(asked, session, epoch_worth_trying(session))
    assert (budget_s > 100.0, why is None) == (enough, enough)


def test_a_variant_is_prepared_with_what_all_variants_share() -> None:
    asked: list[tuple[Command, float]] = []
    shared = SetOptions({"deterministic": True})

    def ask(*command: Any) -> Answer:
        asked.append(command)
        return Prepared("without", first_ns=7)

    prepared = ChildExecutor(ask, (shared,)).prepare(Variant("without", (Remove("op2"),), "equal"))
    assert prepared.first_ns == 7
    assert asked == [(Prepare("without", (shared, Remove("op2")), "equal"), PREPARE_LIMIT_S)]


LONG_WAITS = {
    "loops": [make_loop(epoch_ends=2, keras=make_keras(epochs=12, steps_per_epoch=20))],
    "run": make_waits(140.0, each_s=70.0),
}
LONG_VALIDATIONS = make_run(make_part("evaluation", 210.0, count=3))
LONG_STEPS = make_steps(mean_ms=50.0, batches_per_call=500)
LONG_EVALUATION = Evaluation(steps=32, step_ms=25_000.0, consumer_ms=2.0)


@pytest.mark.parametrize(
    ("slow", "loop_id", "prepare_s", "block_s"),
    [
        (LONG_WAITS, "loop_0", 140.0, 75.0),
        ({"steps": LONG_STEPS}, "loop_0", 120.0, 75.0),
        ({"run": LONG_VALIDATIONS}, "loop_0", 260.0, 200.0),
        ({"loops": [make_loop(), validation(evaluation=LONG_EVALUATION)]}, "loop_1", 120.0, 75.0),
    ],
    ids=["long waits", "long steps", "long validations", "long steps of an evaluation"],
)
def test_what_is_known_to_take_long_is_waited_for(
    slow: dict[str, Any], loop_id: str, prepare_s: float, block_s: float
) -> None:
    limits: dict[type, float] = {}

    def ask(command: Command, limit_s: float) -> Answer:
        limits.setdefault(type(command), limit_s)
        if isinstance(command, RunBlock):
            raise ExecutorLostError("It is gone.")
        return Prepared(command.variant)

    findings = [make_finding(edit=make_edit("a")), of_evaluation()]
    tried = trials_of(make_session(**{"findings": findings, **slow}), budget_s=900.0)
    since_ns = time.monotonic_ns()
    tried(TrialsAwaited(loop_id, alone=False, more_to_come=False, since_ns=since_ns), ask)
    assert tried.fault is None
    assert limits[Prepare] > prepare_s
    assert limits[RunBlock] > block_s


MADE_IN_A_LOOP = """\
import tensorflow as tf

def make(first):
    return tf.data.Dataset.range(first, 9).map(f).batch(2)

for epoch in range(3):
    for batch in make(epoch):
        step(batch)
"""


@pytest.mark.parametrize(
    ("text", "kind", "refused"),
    [
        (MADE_IN_A_LOOP, "loop", True),
        (MADE_IN_A_LOOP, "keras", False),
        (MADE_IN_A_LOOP.replace("make(epoch)", "make(0)"), "loop", False),
        (MADE_IN_A_LOOP.replace("for epoch in range(3):", "if True:"), "loop", False),
    ],
)
def test_a_cache_that_a_loop_makes_anew_is_not_tried(
    text: str, kind: Any, refused: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    op = make_operation("map", "map", file=str(script), line=4)
    pipeline = make_pipeline(ops=[op], bottleneck_op_id=None)
    keras = make_keras() if kind == "keras" else None
    loop = make_loop(file=str(script), line=7, kind=kind, keras=keras)
    session = make_session(loops=[loop], pipeline=pipeline)
    executor = ChildExecutor(Answers(), session=session)
    variant = Variant("cache", (Insert("map", "cache", {}),), None)
    if refused:
        with pytest.raises(VariantRefusedError, match="anew"):
            executor.prepare(variant)
    else:
        executor.prepare(variant)
