"""Evaluation and prediction that take a relevant part of the run, and what their data lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.facts.run_gain import gain_for_run
from pipediag.patching.making import make_patch
from pipediag.rules.evaluation import (
    COSTLY_EVALUATION,
    EAGER_EVALUATION,
    SMALL_PREDICT,
    cached_work,
)
from pipediag.session.edits import AUTOTUNE, Edit, Insert, PredictOnBatch, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.ledger import BETWEEN_ROUNDS, CallbackLine, RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.session.recorded_loops import Evaluation
from pipediag.session.recording import Prediction
from pipediag.trials.candidates import candidates, with_prediction_trial
from tests.factories import make_keras, make_loop, make_session
from tests.ledgers import decoding, ending, make_part, make_run, validation, written
from tests.records import make_function
from tests.rules.sessions import cases, changes, only, run, saved_s

VALIDATION = make_loop(id="loop_1", role="validation", diagnosed=False, batch_size=16)


def evaluated(seconds: float, **overrides: Any) -> RunPart:
    at = {"file": "train.py", "line": 20, "count": 20, "loop_id": "loop_0"}
    values = {"what": "validation in `fit`", **at, **overrides}
    return make_part("evaluation", seconds, **values)


def session_with(*parts: RunPart, loops: list[Loop] | None = None, **overrides: Any) -> Session:
    every = loops if loops is not None else [make_loop(), VALIDATION]
    return make_session(run=make_run(*parts, **overrides), loops=every)


OWN = {"what": "`evaluate`", "line": 33}


def of_loop(iterators: int, **row: Any) -> Session:
    """A loop of the script's that evaluates, with a row that came four times."""
    at = {"what": "a loop that evaluates", "line": 48, "count": 4, **row}
    values = {"id": "loop_2", "kind": "eager", "role": "other", "line": 48, "keras": None}
    loop = make_loop(**values, iterators=iterators)
    return session_with(evaluated(40.0, **at), loops=[make_loop(), loop])


@cases(
    {
        "in fit": (session_with(evaluated(40.0)), "fail", 20),
        "an own call": (session_with(evaluated(40.0, **OWN)), "fail", 33),
        "an own loop": (of_loop(20), "fail", 48),
        "once": (session_with(evaluated(40.0, count=1)), "pass", None),
        # What was seen once may come in each round of the loop around the training.
        "once in a round": (
            session_with(evaluated(40.0, count=1), not_seen=[BETWEEN_ROUNDS]),
            "fail",
            20,
        ),
        "under 10 %": (session_with(evaluated(12.4)), "informative", 20),
        "in each epoch": (
            session_with(evaluated(0.4, count=1), whole_s=2.0, scope="epoch"),
            "fail",
            20,
        ),
    },
    "session, status, line",
)
def test_how_often_a_place_evaluates(session: Session, status: str, line: int | None) -> None:
    finding = only(COSTLY_EVALUATION, session)
    assert (finding.status, finding.line, finding.edit) == (status, line, None)


def a_line(line: int, percent: float, code: str = "rank(row)", loop_line: int = 48) -> CallbackLine:
    return CallbackLine(
        what="a loop that evaluates",
        loop_line=loop_line,
        file="train.py",
        line=line,
        function="rank",
        percent=percent,
        code=code,
    )


@cases(
    {
        "its own function": ([a_line(60, 50.0)], ("fail", 60, 20.0)),
        "metrics": ([a_line(60, 50.0, "metric.update_state(y)")], ("fail", 60, 20.0)),
        "the wait for input": ([a_line(48, 90.0)], None),
        "a call that was timed": ([a_line(50, 90.0)], None),
        "lines beside a call that was timed": (
            [a_line(50, 50.0), a_line(52, 25.0), a_line(53, 15.0)],
            ("fail", 52, 16.0),
        ),
    },
    "lines, found",
)
def test_functions_that_take_most_of_a_loop_that_evaluates(
    lines: list[CallbackLine], found: tuple[str, int, float] | None
) -> None:
    session = of_loop(20)
    called = Prediction(file="train.py", line=50, rows=8)
    updated = {"run": session.run.but(callback_lines=lines), "predictions": [called]}
    named = [one for one in run(COSTLY_EVALUATION, session.but(**updated)) if one.line != 48]
    assert [(one.status, one.line, saved_s(one)) for one in named] == ([found] if found else [])


@pytest.mark.parametrize(("in_framework", "converts"), [(True, True), (False, False)])
def test_rows_of_tensors_are_to_be_converted_before_a_loop(
    in_framework: bool, converts: bool
) -> None:
    line = a_line(60, 50.0, "score = float(scores[i])").but(in_framework=in_framework)
    session = of_loop(20)
    session = session.but(run=session.run.but(callback_lines=[line]))
    (found,) = [one for one in run(COSTLY_EVALUATION, session) if one.line == 60]
    assert (".numpy()" in found.advice) is converts


def test_four_of_twenty_stay_and_places_are_told_one_by_one() -> None:
    finding = only(COSTLY_EVALUATION, session_with(evaluated(40.0)))
    assert finding.part == "evaluation"
    assert saved_s(finding) == pytest.approx(32.0)
    assert finding.speedup_at_most == pytest.approx(5.0)
    own = evaluated(30.0, what="`predict`", line=33)
    findings = run(COSTLY_EVALUATION, session_with(evaluated(20.0), own))
    assert [one.line for one in findings] == [33, 20]


@pytest.mark.parametrize(
    ("names", "row", "effect"),
    [
        ([], {}, "same results"),
        (["EarlyStopping"], {}, "changes a hyper-parameter"),
        (["ModelCheckpoint"], {}, "changes a hyper-parameter"),
        (["EarlyStopping"], OWN, "same results"),
    ],
)
def test_a_callback_that_decides_by_the_validation_in_fit_counts(
    names: list[str], row: dict[str, Any], effect: str
) -> None:
    loop = make_loop(keras=make_keras(deciding_callbacks=names))
    session = session_with(evaluated(40.0, **row), loops=[loop, VALIDATION])
    assert only(COSTLY_EVALUATION, session).effect_on_results == effect


@pytest.mark.parametrize(("count", "at_once"), [(600, True), (20, False)])
def test_many_calls_of_predict_can_be_one(count: int, at_once: bool) -> None:
    row = evaluated(40.0, **{**OWN, "what": "`predict`", "count": count})
    session = session_with(row, epochs_planned=20, projected_total_s=100.0)
    assert ("one call" in only(COSTLY_EVALUATION, session).advice) == at_once


# Its data


def data_of(
    ops: list[Operation] | None = None, evaluation: Evaluation | None = None, **row: Any
) -> list[Finding]:
    """The findings on the data of a validation that takes 40 of 100 s."""
    loop = validation(ending(before=ops))
    if evaluation is not None:
        loop = replace(loop, evaluation=evaluation)
    return of_data(loop, **row)


def of_data(loop: Loop, **row: Any) -> list[Finding]:
    session = session_with(evaluated(40.0, **row), loops=[make_loop(), loop])
    found = run(COSTLY_EVALUATION, session)
    return [one for one in found if "input_wait_percent_of_evaluation" in one.evidence]


def changed(index: int, *, before: list[Operation] | None = None, **update: Any) -> list[Operation]:
    ops = decoding() if before is None else before
    ops[index] = replace(ops[index], **update)
    return ops


def shuffled(behind: str) -> list[Operation]:
    """The decoding pipeline with a shuffle behind that operation."""
    ops = decoding()
    place = [op.id for op in ops].index(behind) + 1
    ops.insert(place, written("v9", "shuffle", 33, behind))
    ops[place + 1] = replace(ops[place + 1], parent_ids=["v9"])
    return ops


def kept(id: str, elements: int) -> object:
    return (Insert(id, "cache", {"elements": elements}),)


SLOW = Evaluation(steps=32, step_ms=1000.0, consumer_ms=1.0)
UNSIZED = {"cardinality": None, "element_bytes": None}
PYTHON = {"graph_ops": {"EagerPyFunc": 1}}
CHANGING = changed(
    1, before=decoding(**PYTHON), function=make_function(**PYTHON, side_effect="it changes `seen`")
)


@cases(
    {
        "all of it": (data_of(), kept("v3", 10), "same results"),
        "eight batches": (data_of(changed(2, **UNSIZED), SLOW), kept("v3", 8), "same results"),
        "Python": (data_of(decoding(**PYTHON)), kept("v3", 10), "not known"),
        "changes something": (data_of(CHANGING), None, "not known"),
        "one order": (data_of(shuffled("v1")), kept("v3", 10), "same up to order or rounding"),
    },
    "found, edit, effect",
)
def test_a_cache_of_what_is_made_anew_each_time(
    found: list[Finding], edit: object, effect: str
) -> None:
    data = found[0]
    assert (data.status, data.part, data.line, data.op_id) == ("fail", "evaluation", 31, "v2")
    assert (changes(data), data.effect_on_results) == (edit, effect)
    assert (data.condition is not None) == (effect == "not known")


def test_a_cache_is_for_the_evaluation_alone_and_filled_by_the_first() -> None:
    (data,) = data_of()
    assert saved_s(data) == pytest.approx(40.0 * 0.8 * 0.95)
    assert (data.edit.id, data.edit.loop_id) == ("costly-evaluation:v3", "loop_1")
    assert data_of(count=1) == []


@pytest.mark.parametrize(("mb", "fits"), [(200, True), (210, False)])
def test_a_cache_of_the_evaluation_takes_half_of_the_free_memory_at_most(
    mb: int, fits: bool
) -> None:
    """Ten batches of eight, of which 204.8 MB each would take half of 4 GB."""
    assert bool(data_of(changed(1, element_bytes=mb * 2**17))) == fits


@cases(
    {
        "all of ten batches": (10, 10, True),
        "a part": (9, 10, False),
        "without end": (10, -1, False),
        "of unknown length": (10, None, False),
        "not told": (None, None, True),
    },
    "steps, held, kept",
)
def test_evaluations_that_stop_before_the_end_complete_no_cache(
    steps: int | None, held: int | None, kept: bool
) -> None:
    """As with `validation_steps`: each one reads from the first batch on."""
    loop = validation(ending(before=changed(2, cardinality=held)), steps_given=steps)
    assert bool(of_data(loop)) == kept


IF_IT_FITS = "if all of its data fits in memory"


def of_files(
    *, iterators: int, element_bytes: int | None = 1024, epochs_seen: float = 1.0
) -> list[Finding]:
    """Records of files, as many as the evaluations that were seen have read: 24 batches of 8."""
    parsed = written("v2", "map", 31, "v1", function=make_function(), element_bytes=element_bytes)
    batches = written("v3", "batch", 32, "v2", parameters={"batch_size": 8})
    loop = validation(ending(written("v1", "TFRecordDataset", 30), parsed, batches, before=[]))
    loop = replace(loop, iterators=iterators, steps=24)
    row = evaluated(40.0)
    seen = session_with(row, loops=[make_loop(), loop], epochs_seen=epochs_seen)
    return [
        one
        for one in run(COSTLY_EVALUATION, seen)
        if "input_wait_percent_of_evaluation" in one.evidence
    ]


@cases(
    {
        "seen to its end": (of_files(iterators=3), [None]),
        "not seen to its end": (of_files(iterators=1), [IF_IT_FITS]),
        "before further steps": (of_files(iterators=1, epochs_seen=1.01), [None]),
        "of unknown size": (of_files(iterators=3, element_bytes=None), [IF_IT_FITS]),
        "too large": (of_files(iterators=3, element_bytes=10**9), []),
    },
    "found, conditions",
)
def test_a_cache_of_files_depends_on_their_size_until_that_was_seen(
    found: list[Finding], conditions: list[str | None]
) -> None:
    assert [one.condition for one in found] == conditions


@pytest.mark.parametrize(
    ("graph_ops", "effect"),
    [
        ({"LookupTableFindV2": 1}, "same results"),
        ({"EagerPyFunc": 1}, "not known"),
        ({"RandomUniform": 1}, "same up to order or rounding"),
    ],
)
def test_a_map_that_tensorflow_keeps_serial_is_tried_in_parallel(
    graph_ops: dict[str, int], effect: str
) -> None:
    for row in ({}, {"count": 1}):
        calls = data_of(decoding(stateful=True, graph_ops=graph_ops), **row)[-1]
        assert (calls.status, calls.line, calls.effect_on_results) == ("fail", 31, effect)
        assert changes(calls) == (SetParameters("v2", {"num_parallel_calls": AUTOTUNE}),)
        assert calls.edit.loop_id == "loop_1"
        # Of 40 s, 80 % are waits, which as many calls as there are CPUs divide.
        assert saved_s(calls) == pytest.approx(40.0 * 0.8 / 2)
    ops = decoding(stateful=True, graph_ops={"LookupTableFindV2": 1})
    assert len(data_of(changed(1, before=ops, parameters={"num_parallel_calls": -1}))) == 1


# Predictions

FILE = "/work/callback.py"


def predicted(on_batch_ms: float, seconds: float = 40.0, pairs: int = 8) -> Session:
    timed = [on_batch_ms + n / 100 for n in range(pairs)]
    part = make_part("evaluation", seconds, what="`predict`", file=FILE, line=4, count=9)
    seen = Prediction(FILE, 4, 500, own_ms=[50.0] * pairs, other_ms=timed)
    return make_session(run=make_run(part, whole_s=60.0), predictions=[seen])


def test_calls_that_mostly_make_a_dataset_fail_with_a_measured_gain() -> None:
    session = predicted(2.0)
    finding = only(SMALL_PREDICT, session)
    assert (finding.status, finding.file, finding.line) == ("fail", FILE, 4)
    assert candidates([finding]) == []
    tried = with_prediction_trial(session, finding).trial
    assert (tried.state, tried.speedup) == ("confirmed", pytest.approx(24.6, rel=0.05))
    assert only(COSTLY_EVALUATION, session).status == "pass"


@pytest.mark.parametrize(
    ("session", "status"),
    [
        (predicted(49.0), "pass"),
        (predicted(2.0, seconds=4.0), "informative"),
        (predicted(2.0, pairs=3), "pass"),
    ],
)
def test_where_the_run_gains_little_or_too_few_were_timed_nothing_fails(
    session: Session, status: str
) -> None:
    assert only(SMALL_PREDICT, session).status == status


def called_eagerly(function_ms: float, steps: int = 300, **timed: Any) -> Session:
    """Evaluation of 40 s at line 8 in a run of 60 s; a batch takes 12 ms, the model 10 of them."""
    part = make_part("evaluation", 40.0, what="a loop", file=FILE, line=8, count=9)
    loop = make_loop(
        id="loop_1",
        role="validation",
        file=FILE,
        line=8,
        steps=steps,
        evaluation=Evaluation(steps=20, step_ms=12.0, consumer_ms=11.0),
    )
    values = {"calls": 300, "model": "model", "loop_id": "loop_1", **timed}
    other_ms = [function_ms + n / 100 for n in range(8)]
    seen = Prediction(FILE, 9, 64, own_ms=[10.0] * 8, other_ms=other_ms, **values)
    return make_session(
        loops=[make_loop(), loop], run=make_run(part, whole_s=60.0), predictions=[seen]
    )


def test_a_model_that_is_called_eagerly_gains_what_its_calls_save_of_a_step() -> None:
    session = called_eagerly(2.0)
    finding = only(EAGER_EVALUATION, session)
    assert (finding.status, finding.file, finding.line) == ("fail", FILE, 9)
    assert candidates([finding]) == []
    tried = with_prediction_trial(session, finding)
    assert tried.trial.state == "confirmed"
    assert tried.trial.speedup == pytest.approx(12.0 / 4.0, rel=0.02)
    gain = gain_for_run(session, tried)
    assert gain.after_s == pytest.approx(20.0 + 40.0 / 3.0, rel=0.02)


@pytest.mark.parametrize(
    ("timed", "traces"), [({}, 1), ({"objects": 3}, 3), ({"made_again": True}, 20)]
)
def test_each_object_of_a_line_is_traced(timed: dict[str, Any], traces: int) -> None:
    """The run has 20 epochs, and a metric that each of them makes anew is traced in each."""
    session = called_eagerly(2.0, traced_ms=500.0, **timed)
    tried = with_prediction_trial(session, only(EAGER_EVALUATION, session))
    assert tried.trial.once_s == pytest.approx(0.5 * traces)
    gain = gain_for_run(session, tried)
    assert gain.after_s == pytest.approx(20.0 + 40.0 / 3.0 + 0.5 * traces, rel=0.02)


def test_calls_of_a_model_between_epochs_gain_what_they_save_of_their_ends() -> None:
    """Of 40 s between ten epochs, 1,000 calls of 10 ms for two ends that were seen take 50 s, which
    is all, or 200 of them 10 s."""
    ends = [
        make_part("epoch_end", 30.0, what="in `Block.call`", file="model.py", line=19),
        make_part("epoch_end", 10.0, what="in `evaluate`", file=FILE, line=9),
    ]
    run = make_run(*ends, whole_s=60.0, epochs_planned=10, epochs_seen=2.5, projected_total_s=60.0)
    for calls, after_s in ((1000, 20.0 + 40.0 / 5.0), (200, 60.0 - 10.0 * 0.8)):
        other_ms = [2.0 + n / 100 for n in range(8)]
        seen = Prediction(
            FILE, 9, 64, own_ms=[10.0] * 8, other_ms=other_ms, calls=calls, model="model"
        )
        session = make_session(run=run, predictions=[seen])
        finding = only(EAGER_EVALUATION, session)
        assert finding.part == "epoch_end"
        tried = with_prediction_trial(session, finding)
        gain = gain_for_run(session, tried)
        assert gain.after_s == pytest.approx(after_s, rel=0.02)


def test_calls_of_a_model_after_the_training_gain_what_they_save_of_that_part() -> None:
    """1,000 calls of 10 ms are 10 of 30 s."""
    after = make_part("after_training", 30.0, what="in `generate`", file=FILE, line=9)
    ends = make_part("epoch_end", 10.0, what="in `save`", file=FILE, line=3)
    other_ms = [2.0 + n / 100 for n in range(8)]
    seen = Prediction(
        FILE, 9, 1, own_ms=[10.0] * 8, other_ms=other_ms, calls=1000, model="model",
        after_training=True,
    )  # fmt: skip
    session = make_session(run=make_run(after, ends, whole_s=60.0), predictions=[seen])
    finding = only(EAGER_EVALUATION, session)
    assert finding.part == "after_training"
    gain = gain_for_run(session, with_prediction_trial(session, finding))
    assert gain.after_s == pytest.approx(60.0 - 10.0 * 0.8, rel=0.02)


@pytest.mark.parametrize(
    "session",
    [called_eagerly(9.9), called_eagerly(2.0, model=None), called_eagerly(2.0, lacking="No.")],
)
def test_a_model_that_gains_nothing_as_a_function_is_left_as_it_is(session: Session) -> None:
    assert only(EAGER_EVALUATION, session).status == "pass"


@pytest.mark.parametrize(("lines", "fail"), [(1, 0), (4, 4)])
def test_metrics_that_are_updated_between_steps_matter_together(lines: int, fail: int) -> None:
    """Each update takes 0.5 of 10 ms, in 40 of 60 s."""
    loop = make_loop(steps=100)
    steps = make_part("steps", 40.0, file=loop.file, line=loop.line, loop_id=loop.id)
    run = make_run(steps, make_part("startup", 20.0), whole_s=60.0)
    metrics = [
        Prediction(
            FILE, line, 64, own_ms=[0.5] * 8, other_ms=[0.05 + n / 1000 for n in range(8)],
            calls=100, model="auc", method="update_state", loop_id=loop.id,
        )
        for line in range(lines)
    ]  # fmt: skip
    session = make_session(loops=[loop], run=run, predictions=metrics)
    session = session.but(steps=session.steps.but(mean_ms=10.0))
    findings = EAGER_EVALUATION.findings(session)
    assert [one.part for one in findings if one.status == "fail"] == ["steps"] * fail
    if fail:
        tried = with_prediction_trial(session, findings[0])
        assert tried.trial.speedup == pytest.approx(1.047, abs=0.002)
        gain = gain_for_run(session, tried)
        assert gain.after_s == pytest.approx(60.0 - 40.0 * 0.045, rel=0.01)


def test_a_model_and_a_metric_that_one_line_calls_are_two_edits_with_their_own_trials() -> None:
    session = called_eagerly(2.0)
    (of_model,) = session.predictions
    other_ms = [each + 2.0 for each in of_model.other_ms]
    of_metric = replace(of_model, model="auc", method="update_state", other_ms=other_ms)
    of_predict = replace(of_model, model=None)
    session = session.but(predictions=[of_predict, of_metric, of_model])
    found = [with_prediction_trial(session, one) for one in EAGER_EVALUATION.findings(session)]

    gains = {changes(one)[0].model: one.trial.speedup for one in found}
    assert gains["model"] == pytest.approx(12.0 / 4.0, rel=0.02)
    assert gains["auc"] == pytest.approx(12.0 / 6.0, rel=0.02)
    edits = [one.edit for one in found]
    assert len({one.id for one in edits}) == 2
    code = (
        "import tensorflow as tf\n\n\n\n\n\n\nfor x, y in val:\n    auc.update_state(y, model(x))\n"
    )
    made, contents = make_patch(session, edits, lambda _: code.encode())
    assert (made.left_out, len(made.edits)) == ([], 2)
    assert b'call_method(auc, "update_state", y, call_model(model, x))' in contents[FILE]


SOURCE = (
    "class C:\n    def on_epoch_end(self, epoch, logs=None):\n        ids = 3\n        x = {}\n"
)


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("self.m.predict((a, b), batch_size=9, verbose=0)", "self.m.predict_on_batch((a, b))"),
        ("m.predict(x=ids)", "m.predict_on_batch(ids)"),
        ("m.predict(ids, verbose=0)[:, 0]", "m.predict_on_batch(ids)[:, 0]"),
        ("m.predict(ids, callbacks=c)", None),
        ("m.predict(*ids)", None),
        ("m.predict(ids, 32)", "m.predict_on_batch(ids)"),
        ("m.predict(a) + n.predict(b)", None),
    ],
)
def test_the_patch_calls_the_other_method_with_the_data_alone(call: str, after: str | None) -> None:
    source = SOURCE.format(call)
    edit = Edit("e", "an edit", (PredictOnBatch(FILE, 4),))
    made, contents = make_patch(make_session(), [edit], lambda _: source.encode())
    if after is None:
        assert made.left_out[0].reason
    else:
        assert contents[FILE].decode() == SOURCE.format(after)


RANDOM = make_function(graph_ops={"RandomUniform": 1})


def placed(pipeline: Pipeline) -> str | None:
    """The id of the operation behind which a cache belongs."""
    _, place = cached_work(pipeline)
    return place.id if place is not None else None


AGAIN = written("v4", "map", 33, "v3", function=make_function())
AHEAD = written("v4", "prefetch", 33, "v3")


@pytest.mark.parametrize(
    ("behind", "work", "place"),
    [
        ((), "v2", "v3"),
        ((AGAIN,), "v4", "v4"),
        # What a cache keeps is not done anew.
        ((written("v4", "cache", 33, "v3"),), None, None),
        # A cache stands as late as it may.
        ((AHEAD,), "v2", "v3"),
        ((written("v4", "take", 33, "v3"),), "v2", "v4"),
        # It would freeze these, or never end on them.
        ((written("v4", "repeat", 33, "v3"),), "v2", "v3"),
        ((written("v4", "shuffle", 33, "v3"), written("v5", "batch", 34, "v4")), "v2", "v3"),
    ],
)
def test_a_cache_stands_behind_the_last_work_of_the_user_s(
    behind: tuple[Operation, ...], work: str | None, place: str | None
) -> None:
    pipeline = ending(*behind)
    found, _ = cached_work(pipeline)
    assert (found and found.id, placed(pipeline)) == (work, place)


def test_what_is_drawn_at_random_is_not_frozen() -> None:
    assert placed(ending(before=decoding(graph_ops={"RandomUniform": 1}))) is None
    augmented = written("v4", "map", 33, "v3", function=RANDOM)
    assert placed(ending(augmented)) is None
