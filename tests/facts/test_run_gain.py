"""What a change gains in all of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.facts.promise import gain_of_separate, gain_of_whole, promised
from pipediag.facts.run import making_ms, time_of_epochs
from pipediag.facts.run_gain import (
    gain_at_most,
    gain_for_run,
    gain_of_all,
    limit_of_run,
    with_saved_traces,
)
from pipediag.session.edits import Change, Edit, ExtractStep, Insert, SetModel, SetParameters
from pipediag.session.findings import Finding, Patch
from pipediag.session.ledger import (
    BETWEEN_ROUNDS,
    COMES_ONCE,
    EVALUATIONS,
    FURTHER_ROUNDS,
    Run,
    RunGain,
    RunSpan,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import Evaluation
from pipediag.session.trials import Basis, Combined, Trial, TrialBlock, TrialRun
from pipediag.vocabulary import RunPartName, RunScope
from tests.factories import make_finding, make_keras, make_loop, make_session, make_steps
from tests.ledgers import make_gain, make_part, make_run, validation
from tests.records import SCRIPT, make_breakdown, make_operation, make_pipeline
from tests.rules.sessions import batch, cases, session_of, source


def compiled(**overrides: Any) -> Finding:
    values = {"part": "compile", "speedup_at_most": None, "edit": None, "line": 20}
    return make_finding("retracing", **{**values, **overrides})


def session_with(**ledger: Any) -> Session:
    compile_ = make_part("compile", 50.0, file="train.py", line=20, count=5)
    return make_session(run=make_run(compile_, **ledger))


@pytest.mark.parametrize(
    ("gained", "basis", "limit"),
    [(2.0, "measured", 4.0), (5.0, "at most", 4.0), (5.0, "measured", None)],
)
def test_the_limit_of_a_run_is_the_model_s_own_work(
    gained: float, basis: str, limit: float | None
) -> None:
    # Steps take 85 s of 100 s, and compute for 20 s of these.
    run = make_run(
        make_part("startup", 3.0), make_part("compile", 2.0), make_part("evaluation", 10.0)
    )
    computed = 100.0 * 20.0 / 85.0
    shares = make_breakdown(input_wait=100.0 - computed, device_compute=computed)
    gain = gain_at_most(run, 100.0 - 100.0 / gained)
    finding = make_finding(for_run=gain.but(basis=basis))
    session = make_session(run=run, breakdown=shares, findings=[finding])
    found = limit_of_run(session)
    assert (found and found.speedup) == (limit and pytest.approx(limit, rel=0.01))
    assert limit_of_run(session.but(run=None)) is None
    assert limit_of_run(session.but(breakdown=None)) is None


def test_what_can_go_entirely_has_a_speed_up_of_the_run_alone() -> None:
    gain = gain_for_run(session_with(), compiled(for_run=gain_at_most(session_with().run, 50.0)))
    assert (gain.speedup, gain.after_s, gain.basis) == (2.0, 50.0, "at most")


@pytest.mark.parametrize(("line", "after_s"), [(20, 70.0), (30, 90.0), (40, 60.0), (None, 60.0)])
def test_a_finding_at_a_line_shortens_what_lies_there_and_one_without_all_of_the_part(
    line: int | None, after_s: float
) -> None:
    """Of 80 s, 60 lie at one line and 20 at another; twice as fast is half as long."""
    rows = [
        make_part("compile", 60.0, file="train.py", line=20),
        make_part("compile", 20.0, file="train.py", line=30),
    ]
    found = compiled(line=line, speedup_at_most=2.0)
    gain = gain_for_run(make_session(run=make_run(*rows)), found)
    assert gain.after_s == after_s


def test_a_gain_on_top_of_others_is_none_of_the_run_as_written() -> None:
    trial = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(1.9, 2.1), blocks=5)
    session = make_session(run=make_run(make_part("steps", 60.0, loop_id="loop_0")))
    assert gain_for_run(session, make_finding(part="steps", trial=trial)) is not None
    on_top = trial.but(on_top_of=["another"])
    assert gain_for_run(session, make_finding(part="steps", trial=on_top)) is None


@pytest.mark.parametrize("cache", [False, True])
def test_making_an_iterator_is_no_wait_and_gets_shorter_behind_a_cache(cache: bool) -> None:
    making = make_part("epoch_start", 8.0, loop_id="loop_0", count=8, what="making the iterator")
    waits = make_part("epoch_start", 6.05, loop_id="loop_0", count=4)
    steps = make_part("steps", 30.0, loop_id="loop_0")
    session = make_session(run=make_run(making, waits, steps), loops=[make_loop(epoch_ends=3)])
    twice = Trial(state="confirmed", reason=None, speedup=2.0, basis="epoch")

    time = time_of_epochs(session)
    assert time.first_batches_s == pytest.approx(6.0)
    assert making_ms(session) == 2000.0
    change = Insert("op2", "cache" if cache else "prefetch")
    found = make_finding(part="steps", trial=twice, edit=Edit("one", "a change", (change,)))
    gain = gain_for_run(session, found)
    steps_s = 85.95  # as make_run adds them up to 100 s
    # One epoch of 20 fills the cache; the 6 s are those of the 19 later ones.
    shorter_s = 6.0 + ((8.0 + steps_s) * 0.95 if cache else steps_s)
    assert gain.before_s - gain.after_s == pytest.approx(shorter_s / 2)
    epoch = session.but(run=make_run(making, scope="epoch"))
    assert making_ms(epoch) == 8000.0
    steps_alone = session.but(run=make_run(making, scope="1000_steps"))
    assert making_ms(steps_alone) == 0.0


@pytest.mark.parametrize(
    ("line", "wait_ms", "saved_s"),
    [
        (12, 30.0, 12.5 / 40.0),  # as much as a training step of 25 ms that gets twice as fast
        (12, 4.0, 4.0 / 40.0),  # but no more than it waits
        (13, 30.0, 0.0),  # made by another line
    ],
)
def test_an_evaluation_of_the_same_lines_waits_less_for_input_too(
    line: int, wait_ms: float, saved_s: float
) -> None:
    taken = make_part("evaluation", 10.0, file="eval.py", line=9)
    pipeline = make_pipeline(ops=[make_operation("val_map", "map", line=line)])
    seen = Evaluation(steps=8, step_ms=40.0, consumer_ms=40.0 - wait_ms)
    evaluates = make_loop(
        id="eval", role="other", file="eval.py", line=9, evaluation=seen, pipeline=pipeline
    )
    trial = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(2.0, 2.0))
    edit = Edit("calls", "", (SetParameters("map_0", {"num_parallel_calls": 4}),))
    steps = make_steps(mean_ms=25.0)
    session = make_session(run=make_run(taken), loops=[make_loop(), evaluates], steps=steps)
    gain = gain_for_run(session, make_finding(part="steps", edit=edit, trial=trial))
    assert gain.before_s - gain.after_s == pytest.approx(45.0 + 10.0 * saved_s)
    # It may save nothing.
    assert gain.ci95[0] <= 100.0 / 55.0


@pytest.mark.parametrize(
    ("op_id", "fill_ms", "saved_s"),
    [
        ("generator", 3000.0, 5.0),  # the shuffle below it fills twice as fast
        ("batch", 3000.0, 0.0),
        ("generator", 300.0, 0.0),  # the wait may be the pipeline's start alone
    ],
)
def test_a_shuffle_fills_as_much_faster_as_what_is_above_it(
    op_id: str, fill_ms: float, saved_s: float
) -> None:
    chain = ("from_generator", "shuffle", "batch")
    names = ("generator", "shuffle", "batch")
    ops = [
        make_operation(name, kind, parent_ids=[above] if above else [])
        for name, kind, above in zip(names, chain, (None, *names), strict=False)
    ]
    waits = make_part("epoch_start", 10.0, loop_id="loop_0", count=4)
    session = make_session(
        run=make_run(waits, make_part("steps", 90.0, loop_id="loop_0")),
        loops=[make_loop(epoch_ends=3)],
        pipeline=make_pipeline(ops=ops),
        steps=make_steps(fill_ms=fill_ms),
    )
    trial = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(2.0, 2.0))
    edit = Edit("faster", "", (SetParameters(op_id, {"num_parallel_calls": 4}),))
    gain = gain_for_run(session, make_finding(part="steps", op_id=op_id, edit=edit, trial=trial))
    assert gain.before_s - gain.after_s == pytest.approx(45.0 + saved_s)
    untried = make_finding(part="steps", op_id=op_id, edit=edit, speedup_at_most=2.0)
    bound = gain_for_run(session, untried)
    # At most, the waits go.
    assert (bound.basis, bound.after_s) == ("at most", pytest.approx(55.0 - 2.0 * saved_s))
    # It may fill no faster.
    assert gain.ci95[0] <= 100.0 / 55.0


def cached(loop_id: str | None = None) -> Finding:
    edit = Edit("missing-cache:op2", "a cache", (Insert("op2", "cache"),), loop_id=loop_id)
    twice = Trial(state="confirmed", reason=None, speedup=2.0)
    return make_finding(part="steps", edit=edit, trial=twice)


@pytest.mark.parametrize(
    ("ledger", "saved_s"),
    [
        ({"epochs_planned": 5}, 40.0),
        ({"epochs_planned": None, "epochs_seen": 4.0}, 37.5),
        ({"epochs_planned": 5, "epochs_seen": 2.0, "projected_total_s": 100.0}, 40.0),
        ({"epochs_planned": 1}, None),
        # The `fit` has two epochs, of which one was not seen to its end.
        ({"scope": "epoch"}, 25.0),
    ],
)
def test_the_epoch_that_fills_a_cache_takes_what_it_took(
    ledger: dict[str, Any], saved_s: float | None
) -> None:
    """All of 100 s are steps, which get twice as fast."""
    session = make_session(run=make_run(**ledger))
    gain = gain_for_run(session, cached())
    if saved_s is None:
        assert gain is None
        return
    assert gain.before_s - gain.after_s == pytest.approx(saved_s)


REPEATED = make_operation("first", "repeat", parameters={"count": 7}), make_operation("op2", "map")


def again(count: int | None) -> Operation:
    return make_operation("again", "repeat", parameters={"count": count})


def fitted(*ops: Operation, epochs: int, steps_per_epoch: int | None = None) -> Session:
    keras = make_keras(epochs=epochs, steps_per_epoch=steps_per_epoch)
    run = make_run(epochs_planned=epochs)
    return session_of(source(), *ops, loops=[make_loop(keras=keras)], run=run)


def own(count: int | None, rows: int | None, length: int | None, steps: int | None) -> Session:
    """A loop of the script's own over 10,000 examples in batches of 32, that takes these steps."""
    part = make_part("steps", 100.0, file=SCRIPT, line=20, loop_id="loop_0", count=steps)
    mapped = make_operation("op2", "map", cardinality=rows)
    loops = [make_loop(keras=None, planned_rounds=1)]
    run = make_run(parts=[part], epochs_planned=1, epochs_seen=1)
    return session_of(
        source(), mapped, again(count), batch(cardinality=length), loops=loops, run=run
    )


@cases(
    {
        "an endless repeat, 0.32 passes": (
            fitted(again(None), batch(), epochs=10, steps_per_epoch=10),
            None,
        ),
        "4 passes": (fitted(again(None), batch(), epochs=10, steps_per_epoch=125), 37.5),
        "parts of the data, 0.6 passes": (
            fitted(batch(10, cardinality=1000), epochs=12, steps_per_epoch=50),
            None,
        ),
        # Of 313 batches, repeated behind the cache; a repeat before it makes more data.
        "ten passes": (fitted(*REPEATED, again(10), batch(cardinality=3130), epochs=1), 45.0),
        "less than one": (
            fitted(*REPEATED, again(10), batch(cardinality=3130), epochs=10, steps_per_epoch=31),
            None,
        ),
        "no repeat behind it": (fitted(*REPEATED, batch(cardinality=313), epochs=2), 25.0),
        "an own loop, 0.32 passes": (own(None, 10_000, -1, 100), None),
        "an own loop, 4": (own(None, 10_000, -1, 1250), 37.5),
        "an own loop, unknown": (own(None, 10_000, -1, None), 50.0),
        "an own loop that ends, 4": (own(10, 10_000, 3125, 1250), 37.5),
    },
    "session, saved_s",
)
def test_the_first_pass_over_the_data_fills_a_cache(
    session: Session, saved_s: float | None
) -> None:
    gain = gain_for_run(session, cached())
    assert (gain and gain.before_s - gain.after_s) == (saved_s and pytest.approx(saved_s))


def test_the_epochs_of_rounds_that_were_seen_count_where_more_may_come() -> None:
    """Five calls of a `fit` of one epoch."""
    run = make_run(epochs_planned=1, not_seen=[FURTHER_ROUNDS])
    loop = make_loop(keras=make_keras(epochs=1), epoch_ends=4)
    gain = gain_for_run(make_session(run=run, loops=[loop]), cached())
    assert gain.after_s == pytest.approx(60.0)


@pytest.mark.parametrize(("filling", "first_s"), [(None, 20.0), (2.0, 10.0)])
@pytest.mark.parametrize("ledger", [{"epochs_planned": 5}, {"scope": "1000_steps"}])
def test_other_changes_shorten_the_epoch_that_fills_it_by_what_they_gain_alone(
    ledger: dict[str, Any], filling: float | None, first_s: float
) -> None:
    rounds = [make_loop(keras=None, planned_rounds=5)]
    session = make_session(run=make_run(**ledger), loops=rounds, findings=[cached()])
    combined = Combined(
        findings=["missing-cache:op2", "other:op1"],
        speedup=4.0,
        ci95=(4.0, 4.0),
        filling_speedup=filling,
    )
    gain = gain_of_all(session, combined)
    assert gain.after_s == pytest.approx(first_s + 80.0 / 4)
    assert gain.speedup == pytest.approx(100.0 / gain.after_s)
    assert gain.ci95[0] <= gain.speedup <= gain.ci95[1]


@pytest.mark.parametrize("speedup", [2.0, None])
def test_rounding_takes_no_gain_away(speedup: float | None) -> None:
    """An epoch of 0.3 s is steps of 0.1 s and a wait of 0.2 s, which are more by their last bit."""
    rows = [
        make_part("epoch_start", 0.2, loop_id="loop_0", count=1),
        make_part("steps", 0.1, loop_id="loop_0", count=10),
    ]
    session = make_session(
        run=make_run(*rows, whole_s=0.3, scope="epoch"),
        loops=[make_loop(keras=None, epoch_ends=3)],
        steps=make_steps(boundaries=0),
    )
    state: Any = "not_tried" if speedup is None else "confirmed"
    trial = Trial(state=state, reason=None, speedup=speedup, basis="epoch")
    gain = gain_for_run(session, cached().but(trial=trial, speedup_at_most=2.0))
    assert gain.speedup == pytest.approx(2.0)


def test_an_edit_of_an_evaluation_shortens_what_its_loop_takes() -> None:
    """The finding stands at a line of the pipeline; 20 of 100 s are at another evaluation."""
    rows = [
        make_part("evaluation", 40.0, file="train.py", line=20),
        make_part("evaluation", 20.0, file="train.py", line=90),
    ]
    session = make_session(run=make_run(*rows), loops=[make_loop(), validation(file="train.py")])
    edit = Edit("costly-evaluation:v3", "a cache", (), loop_id="loop_1")
    trial = Trial(state="confirmed", reason=None, speedup=4.0)
    found = make_finding(part="evaluation", file="train.py", line=31, edit=edit, trial=trial)
    gain = gain_for_run(session, found)
    assert gain.after_s == pytest.approx(70.0)


@pytest.mark.parametrize(
    ("times", "not_seen", "after_s"), [(2, [], 85.0), (20, [], 71.5), (1, [FURTHER_ROUNDS], 70.0)]
)
def test_an_evaluation_that_fills_its_own_cache_takes_what_it_took(
    times: int, not_seen: list[str], after_s: float
) -> None:
    """Unless more of them come than are known of."""
    rows = [make_part("evaluation", 40.0, file="train.py", line=20, count=times)]
    run = make_run(*rows, not_seen=not_seen)
    session = make_session(run=run, loops=[make_loop(), validation(file="train.py")])
    edit = Edit("cache", "a cache", (Insert("v3", "cache"),), loop_id="loop_1")
    trial = Trial(state="confirmed", reason=None, speedup=4.0)
    found = make_finding(part="evaluation", file="train.py", line=31, edit=edit, trial=trial)
    assert gain_for_run(session, found).after_s == pytest.approx(after_s)


@pytest.mark.parametrize(("off_percent", "off_s"), [(0.0, 0.0), (10.0, 10.0), (None, 1.6)])
def test_how_long_the_rest_is_known_to_take_widens_the_interval(
    off_percent: float | None, off_s: float
) -> None:
    """84 of 100 s get 9.3 times as fast, and 16 s stay; of what came once a tenth is in doubt."""
    limits = None if off_percent is None else (16.0 - off_percent, 16.0 + off_percent)
    rest = make_part("epoch_end", 16.0, ci95_percent=limits)
    steps = make_part("steps", 84.0, loop_id="loop_0", ci95_percent=(84.0, 84.0))
    trial = Trial(state="confirmed", reason=None, speedup=84 / 9, ci95=(84 / 9, 84 / 9))
    session = make_session(run=make_run(rest, steps))
    gain = gain_for_run(session, make_finding(part="steps", trial=trial))
    assert gain.speedup == pytest.approx(4.0)
    assert gain.ci95 == pytest.approx(
        ((100.0 + off_s) / (25.0 + off_s), (100.0 - off_s) / (25.0 - off_s))
    )


def traced(once_s: float | None, limits: tuple[float, float] | None, **ledger: Any) -> Any:
    """80 of 100 s are steps, which get four times as fast."""
    rest = make_part("epoch_end", 20.0, ci95_percent=(20.0, 20.0))
    steps = make_part("steps", 80.0, loop_id="loop_0", ci95_percent=(80.0, 80.0))
    session = make_session(run=make_run(rest, steps, **ledger))
    once = {"once_s": once_s, "once_ci95_s": limits}
    trial = Trial(state="confirmed", reason=None, speedup=4.0, ci95=(4.0, 4.0), **once)
    return gain_for_run(session, make_finding(part="steps", trial=trial))


def test_xla_compiles_what_evaluates_too() -> None:
    """Of 60 s of steps, half is saved; compiling takes 4 s, and in the evaluation 2 s more."""
    steps = make_part("steps", 60.0, loop_id="loop_0", ci95_percent=(60.0, 60.0))
    run = make_run(steps, make_part("evaluation", 40.0, ci95_percent=(40.0, 40.0)))
    once = {"once_s": 4.0, "once_ci95_s": (4.0, 4.0)}
    trial = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(2.0, 2.0), **once)
    edit = Edit("xla", "XLA", (SetModel({"jit_compile": True}),))
    gain = gain_for_run(make_session(run=run), make_finding(part="steps", edit=edit, trial=trial))
    assert gain.after_s == pytest.approx(40.0 + 30.0 + 4.0 + 2.0)
    assert gain.ci95 == pytest.approx((100.0 / 78.0, 100.0 / 74.0))


FURTHER = {"not_seen": [FURTHER_ROUNDS]}


@pytest.mark.parametrize(
    ("once_s", "limits", "ledger", "after_s", "ci95"),
    [
        (10.0, (0.0, 30.0), {}, 50.0, (100.0 / 70.0, 100.0 / 40.0)),
        # An epoch, or so many steps, have no part of what comes once.
        (10.0, (0.0, 30.0), {"scope": "epoch"}, 40.0, (2.5, 2.5)),
        (10.0, (0.0, 30.0), {"scope": "1000_steps"}, 40.0, (2.5, 2.5)),
        # As in `while not converged: model.fit(..., epochs=1)`: few rounds may not be all.
        (10.0, (10.0, 10.0), FURTHER, 50.0, (2.0, 2.0)),
        (70.0, (70.0, 70.0), FURTHER, None, None),
    ],
)
def test_what_is_traced_once_more_is_no_gain(
    once_s: float,
    limits: tuple[float, float],
    ledger: dict[str, Any],
    after_s: float | None,
    ci95: tuple[float, float] | None,
) -> None:
    gain = traced(once_s, limits, **ledger)
    if after_s is None:
        assert gain is None
        return
    assert (gain.before_s, gain.after_s, gain.once_s) == (100.0, after_s, once_s)
    assert gain.ci95 == pytest.approx(ci95)


@pytest.mark.parametrize(
    ("traces", "planned", "not_seen", "once_s", "limits"),
    [
        (5, 5, [], 20.0, (15.0, 25.0)),  # a model for each fold
        (1, 5, [], 4.0, (3.0, 5.0)),  # one model for all
        (1, 5, [BETWEEN_ROUNDS], 4.0, (3.0, 25.0)),
        (2, 1, [], 4.0, (3.0, 5.0)),  # two sizes of batches
        (3, 1, [FURTHER_ROUNDS], 12.0, (9.0, 15.0)),
    ],
)
@pytest.mark.parametrize("combined", [False, True])
def test_each_model_that_is_built_is_traced_otherwise(
    traces: int,
    planned: int,
    not_seen: list[str],
    once_s: float,
    limits: tuple[float, float],
    combined: bool,
) -> None:
    of_step = {"file": "train.py", "line": 20, "count": traces, "what": "the step of `fit`"}
    run = make_run(make_part("compile", 10.0, **of_step), not_seen=not_seen)
    loop = make_loop(file="train.py", line=20, planned_rounds=planned)
    edit = Edit("jit", "", (SetModel({"jit_compile": True}),))
    once = {"speedup": 2.0, "ci95": (2.0, 2.0), "once_s": 4.0, "once_ci95_s": (3.0, 5.0)}
    trial = Trial(state="confirmed", reason=None, **once)
    finding = make_finding(part="steps", edit=edit, trial=trial)
    session = make_session(run=run, loops=[loop], findings=[finding])
    gain = gain_for_run(session, finding)
    if combined:
        gain = gain_of_all(session, Combined(findings=["jit"], **once))
    assert (gain.after_s, gain.once_s, gain.once_ci95_s) == (55.0 + once_s, once_s, limits)
    assert gain.ci95[0] <= 100.0 / (55.0 + limits[1])


@pytest.mark.parametrize(("each_round", "epochs"), [(False, 25), (True, 5)])
def test_a_cache_of_data_that_is_made_anew_is_filled_in_each_round(
    each_round: bool, epochs: int
) -> None:
    """Five folds of five epochs each."""
    loop = make_loop(keras=make_keras(epochs=5), planned_rounds=5, epoch_ends=3)
    edit = Edit("cache", "", (Insert("map_0", "cache"),), each_round=each_round)
    trial = {"speedup": 10.0, "ci95": (10.0, 10.0)}
    for basis in ("step", "epoch"):
        confirmed = Trial(state="confirmed", reason=None, basis=basis, **trial)
        finding = make_finding(part="steps", edit=edit, trial=confirmed)
        session = make_session(run=make_run(epochs_planned=25), loops=[loop], findings=[finding])
        left = pytest.approx(100.0 / epochs + 10.0 * (1.0 - 1.0 / epochs))
        gain = gain_for_run(session, finding)
        assert gain.after_s == left
        together = gain_of_all(session, Combined(findings=["cache"], basis=basis, **trial))
        assert together.after_s == left


def span(part: RunPartName | None, seconds: float) -> RunSpan:
    return RunSpan(part=part, start_ms=0.0, duration_ms=1000.0 * seconds)


def ledger(scope: RunScope = "1000_steps") -> Run:
    """Four seconds come once; what pipediag took is none of it."""
    spans = [span("startup", 3.0), span("compile", 1.0), span("steps", 5.0), span(None, 9.0)]
    return Run(scope=scope, total_s=9.0, pipediag_s=9.0, parts=[], spans=spans)


def gain(scope: RunScope = "1000_steps", speedup: float = 10.0) -> RunGain:
    return make_gain(speedup, 20.0, ci95=(speedup / 2, speedup * 2), scope=scope)


TRACED_AGAIN = {"once_s": 2.0, "once_ci95_s": (1.0, 3.0), "ci95": (10.0, 10.0)}


@pytest.mark.parametrize(
    ("gain", "script_s", "after_s", "ci95"),
    [
        (gain("1000_steps"), 24.0, 6.0, (3.0, 4.8)),
        (gain("epoch"), 24.0, 6.0, (3.0, 4.8)),
        (gain().but(**TRACED_AGAIN), 24.0, 8.0, (24.0 / 9.0, 24.0 / 7.0)),
        # Shorter than what comes once.
        (gain(), 3.9, None, None),
    ],
)
def test_what_comes_once_takes_what_it_took(
    gain: RunGain, script_s: float, after_s: float | None, ci95: tuple[float, float] | None
) -> None:
    whole = gain_of_whole(gain, make_session(run=ledger(gain.scope)), script_s)
    if after_s is None:
        assert whole is None
        return
    assert (whole.before_s, whole.after_s, whole.scope) == (24.0, pytest.approx(after_s), "run")
    assert whole.speedup == pytest.approx(24.0 / after_s)
    assert whole.ci95 == pytest.approx(ci95)


def test_evaluations_that_were_seen_in_trials_alone_get_no_faster() -> None:
    """Five of 20 steps of 100 ms each, for at least 100 steps of 100 ms."""
    training = make_loop(steps=60)
    evaluation = replace(
        make_loop(id="loop_2", role="validation", line=48, steps=100, iterators=5),
        evaluation=Evaluation(steps=20, step_ms=100.0, consumer_ms=90.0),
    )
    block = TrialBlock(arm="base", round=1, examples_per_s=1.0, batches=40, duration_ms=1.0)
    trials = TrialRun(
        loop_id="loop_0", consumer="training", budget_s=90.0, used_s=80.0, blocks=[block]
    )
    run = ledger().but(not_seen=[COMES_ONCE, EVALUATIONS])
    session = make_session(
        run=run, loops=[training, evaluation], trials=trials, steps=make_steps(mean_ms=100.0)
    )
    whole = gain_of_whole(gain(), session, 24.0)
    assert whole.after_s == pytest.approx(4.0 + 10.0 + 1.0)
    assert whole.ci95 == pytest.approx((24.0 / (4.0 + 10.0 + 2.0), 24.0 / (4.0 + 1.0)))


def traced_again(**trial: Any) -> Trial | None:
    """Steps of 30 s and 20 traces of 2 s each, in a run of 100 s."""
    session = make_session(
        loops=[make_loop(step_functions=["train.py:7 train_step"])],
        run=make_run(
            make_part("compile", 40.0, file="train.py", line=7, what="train_step", count=20),
            make_part("steps", 30.0, loop_id="loop_0"),
            make_part("startup", 30.0),
        ),
    )
    steps = {"speedup": 1.0, "ci95": (0.95, 1.05), "traces": 2, "blocks": 6, "basis": "step"}
    found = with_saved_traces(session, Trial(state="refuted", reason=None, **{**steps, **trial}))
    if found is not None:
        gain = gain_for_run(session, make_finding("retracing", trial=found))
        assert (gain.speedup, gain.basis) == (pytest.approx(found.speedup), "measured")
    return found


@pytest.mark.parametrize(
    ("trial", "speedup"),
    [
        ({}, 100 / 64),
        ({"traces": 20}, 1.0),
        ({"speedup": 0.5, "ci95": (0.4, 0.6)}, 100 / 94),
        ({"traces": None}, None),
        ({"speedup": None}, None),
    ],
)
def test_traces_that_go_shorten_the_run_by_what_they_took(
    trial: dict[str, Any], speedup: float | None
) -> None:
    found = traced_again(**trial)
    if speedup is None:
        assert found is None
        return
    assert found.speedup == pytest.approx(speedup, abs=1e-3)
    assert found.ci95[0] < speedup < found.ci95[1]


def test_what_separate_parts_save_adds_up_and_their_errors_in_squares() -> None:
    def saving(saved_s: float, off_s: float) -> RunGain:
        after_s = 100.0 - saved_s
        limits = (100.0 / (after_s + off_s), 100.0 / (after_s - off_s))
        return make_gain(100.0 / after_s, ci95=limits)

    gain = gain_of_separate([saving(30.0, 3.0), saving(20.0, 4.0)])
    assert gain.after_s == pytest.approx(50.0)
    assert gain.ci95 is not None
    assert [100.0 / end for end in gain.ci95] == pytest.approx([55.0, 45.0], abs=0.3)
    # They can't have been separate.
    assert gain_of_separate([saving(60.0, 3.0), saving(45.0, 4.0)]) is None


@pytest.mark.parametrize(("scope", "least"), [("run", 3.0), ("epoch", 1.5)])
def test_steps_that_fill_a_cache_are_in_the_interval_where_their_number_is_not_known(
    scope: RunScope, least: float
) -> None:
    gain = make_gain(4.0, ci95=(3.0, 5.0), scope=scope)
    combined = Combined(
        findings=["missing-cache:op2"],
        speedup=4.0,
        ci95=(3.0, 5.0),
        filling_speedup=1.7,
        filling_ci95=(1.5, 1.9),
        for_run=gain,
    )
    patch = Patch(edits=["missing-cache:op2"], diff="--- a\n")
    session = make_session(
        run=make_run(scope=scope),
        loops=[make_loop(keras=None)],
        steps=make_steps(boundaries=0),
        findings=[cached()],
        combined=combined,
        patch=patch,
    )
    assert promised(session).ci95 == (least, 5.0)


def with_gain(
    name: str, speedup: float, basis: Basis | None, *, part: RunPartName = "steps"
) -> Finding:
    gain = make_gain(speedup)
    trial = Trial(state="confirmed", reason=None, speedup=speedup, basis=basis)
    change: Change = SetParameters(name, {})
    if name == "step":
        change = ExtractStep("train.py", 9)
    return make_finding(part=part, edit=Edit(name, "", (change,)), trial=trial, for_run=gain)


@pytest.mark.parametrize("part", ["epoch_start", "steps"])
def test_a_step_that_was_timed_by_itself_adds_to_what_waits_save(part: RunPartName) -> None:
    """Where steps wait for input, faster ones may wait for longer: one gain alone is sure."""
    findings = [with_gain("cache", 1.25, "epoch", part=part), with_gain("step", 2.0, None)]
    findings = [
        one.but(for_run=one.for_run.but(ci95=ends))
        for one, ends in zip(findings, [(1.2, 1.3), (1.8, 2.2)], strict=True)
    ]
    patch = Patch(edits=["cache", "step"], diff="--- a\n")
    found = promised(make_session(findings=findings, patch=patch))
    assert found.after_s == pytest.approx(30.0)
    assert found.ci95[0] == 1.8 if part == "steps" else found.ci95[0] > 2.0


def test_of_two_changes_of_one_evaluation_the_greater_is_promised() -> None:
    gains = {"cache": 1.1, "parallel": 1.25}
    findings = [with_gain(*one, "pipeline", part="evaluation") for one in gains.items()]
    patch = Patch(edits=[*gains], diff="--- a\n")
    assert promised(make_session(findings=findings, patch=patch)).speedup == 1.25


def test_pauses_that_are_left_out_are_a_part_of_what_is_left() -> None:
    findings = [with_gain("pauses", 1.25, "pauses"), with_gain("parallel", 4.0, "step")]
    patch = Patch(edits=["pauses", "parallel"], diff="--- a\n")
    found = promised(make_session(findings=findings, patch=patch))
    assert (found.speedup, found.after_s) == (5.0, 20.0)
