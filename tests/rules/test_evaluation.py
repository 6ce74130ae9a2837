from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.evaluation import COSTLY_EVALUATION
from pipediag.session.edits import AUTOTUNE, Edit, Insert, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunPart
from pipediag.session.loops import Evaluation, Loop
from pipediag.session.model import Session
from tests.evaluations import decoding, ending, validation, written
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_function
from tests.rules.sessions import only, run, saved_s

VALIDATION = make_loop(id="loop_1", role="validation", diagnosed=False, batch_size=16)


def evaluated(seconds: float, **overrides: Any) -> RunPart:
    values = {
        "what": "validation in `fit`",
        "file": "train.py",
        "line": 20,
        "count": 20,
        "loop_id": "loop_0",
    }
    return make_part("evaluation", seconds, **{**values, **overrides})


def session_with(*parts: RunPart, loops: list[Loop] | None = None, **overrides: Any) -> Session:
    every = loops if loops is not None else [make_loop(), VALIDATION]
    return make_session(run=make_run(*parts, **overrides), loops=every)


def test_validation_in_fit_is_done_less_often() -> None:
    finding = only(COSTLY_EVALUATION, session_with(evaluated(40.0)))
    assert (finding.status, finding.part, finding.line) == ("fail", "evaluation", 20)
    # Four of twenty stay.
    assert saved_s(finding) == pytest.approx(32.0)
    assert finding.speedup_at_most == pytest.approx(5.0)
    assert finding.effect_on_results == "same results"


ARRAYS = [
    written("v1", "range", 20, made_by_framework=True),
    written("v2", "map", 20, "v1", made_by_framework=True),
]


@pytest.mark.parametrize("name", ["EarlyStopping", "ReduceLROnPlateau"])
def test_a_callback_that_decides_by_the_validation_is_named(name: str) -> None:
    loop = make_loop(keras=make_keras(deciding_callbacks=[name]))
    finding = only(COSTLY_EVALUATION, session_with(evaluated(40.0), loops=[loop, VALIDATION]))
    assert finding.effect_on_results == "changes a hyper-parameter"


def test_it_does_not_watch_what_the_script_evaluates_itself() -> None:
    loop = make_loop(keras=make_keras(deciding_callbacks=["EarlyStopping"]))
    row = evaluated(40.0, what="`evaluate`", line=33)
    finding = only(COSTLY_EVALUATION, session_with(row, loops=[loop, VALIDATION]))
    assert finding.effect_on_results == "same results"


def test_what_fewer_evaluations_come_to_is_said_and_not_tried() -> None:
    """Four of twenty take 8 of 40 s, of a run of 100 s."""
    finding = only(COSTLY_EVALUATION, session_with(evaluated(40.0)))
    assert finding.edit is None
    assert finding.trial.reason == (
        "Only you know how often you need to know: to evaluate less changes what you and your "
        "callbacks see, so that is not tried."
    )
    only(COSTLY_EVALUATION, session_with(evaluated(40.0, count=4)))


def test_an_own_call_is_named_as_it_is_written() -> None:
    finding = only(COSTLY_EVALUATION, session_with(evaluated(40.0, what="`evaluate`", line=33)))
    assert finding.line == 33


def test_a_loop_that_evaluates_is_one_of_the_script_s() -> None:
    row = evaluated(40.0, what="a loop that evaluates", line=48)
    loop = make_loop(id="loop_2", kind="eager", role="other", line=48, batch_size=8)
    loop = loop.model_copy(update={"keras": None, "iterators": 20})
    finding = only(COSTLY_EVALUATION, session_with(row, loops=[make_loop(), loop]))
    assert finding.evidence["batch_size"] == 8


def test_a_loop_that_evaluates_twice_has_two_iterators() -> None:
    row = evaluated(40.0, what="a loop that evaluates", line=48, count=4)
    loop = make_loop(id="loop_2", kind="eager", role="other", line=48, keras=None, iterators=2)
    session = session_with(row, loops=[make_loop(), loop])
    assert only(COSTLY_EVALUATION, session).status == "informative"
    projected = session_with(
        row.model_copy(update={"basis": "projected"}), loops=[make_loop(), loop]
    )
    assert only(COSTLY_EVALUATION, projected).status == "fail"


@pytest.mark.parametrize("count", [1, 2])
def test_the_test_after_a_training_may_take_its_time(count: int) -> None:
    row = evaluated(40.0, what="`evaluate`", line=60, count=count)
    finding = only(COSTLY_EVALUATION, session_with(row))
    assert finding.status == "informative"
    assert only(COSTLY_EVALUATION, session_with(evaluated(4.0, count=count))).status == "pass"


@pytest.mark.parametrize(
    ("seconds", "status"), [(12.6, "fail"), (12.4, "informative"), (6.4, "informative")]
)
def test_either_side_of_the_limits(seconds: float, status: str) -> None:
    assert only(COSTLY_EVALUATION, session_with(evaluated(seconds))).status == status


def test_little_evaluation_passes() -> None:
    assert only(COSTLY_EVALUATION, session_with(evaluated(5.1))).status == "pass"
    assert only(COSTLY_EVALUATION, session_with()).status == "pass"


def test_places_are_told_one_by_one() -> None:
    own = evaluated(30.0, what="`predict`", line=33)
    findings = run(COSTLY_EVALUATION, session_with(evaluated(20.0), own))
    assert [one.line for one in findings] == [33, 20]


def test_a_try_of_a_few_seconds_is_only_informed() -> None:
    finding = only(COSTLY_EVALUATION, session_with(evaluated(1.9), whole_s=4.0))
    assert finding.status == "informative"


def test_in_a_ledger_of_one_epoch_it_comes_with_each() -> None:
    epoch = session_with(evaluated(0.4, count=1), whole_s=2.0, scope="epoch")
    assert only(COSTLY_EVALUATION, epoch).status == "fail"


# What its data is made of.

HARDLY = Evaluation(steps=32, step_ms=10.0, consumer_ms=9.6)
UNTOLD = Evaluation(steps=32, step_ms=10.0, consumer_ms=None)


def findings_of(loop: Loop, **row: Any) -> list[Finding]:
    """Of a validation that takes 40 of 100 s."""
    return run(COSTLY_EVALUATION, session_with(evaluated(40.0, **row), loops=[make_loop(), loop]))


def test_what_is_decoded_anew_each_time_is_named_at_its_own_line() -> None:
    _often, data = findings_of(validation())
    assert (data.status, data.part, data.line, data.op_id) == ("fail", "evaluation", 31, "v2")
    assert data.effect_on_results == "same results"
    # Of 40 s, 80 % in 19 of 20 evaluations.
    assert saved_s(data) == pytest.approx(40.0 * 0.8 * 0.95)
    assert data.edit == Edit(
        id="costly-evaluation:v3",
        label="cache behind the batch in line 32, for the evaluation",
        changes=(Insert("v3", "cache", {"elements": 10}),),
        caveat="Measured once the cache is full.",
        loop_id="loop_1",
    )


def test_a_cache_is_tried_on_what_two_seconds_make() -> None:
    ops = decoding()
    ops[2] = ops[2].model_copy(update={"cardinality": None, "element_bytes": None})
    _, data = findings_of(validation(ending(before=ops)))
    assert data.edit is not None
    assert data.edit.changes == (Insert("v3", "cache", {"elements": 200}),)
    slow = Evaluation(steps=32, step_ms=1000.0, consumer_ms=1.0)
    _, data = findings_of(validation(ending(before=ops), evaluation=slow))
    assert data.edit is not None
    assert data.edit.changes == (Insert("v3", "cache", {"elements": 8}),)


def test_a_cache_within_the_pipeline_holds_what_its_batches_are_made_of() -> None:
    ops = decoding()
    shuffled = written("v9", "shuffle", 33, "v2")
    ops[2:] = [shuffled, ops[2].model_copy(update={"parent_ids": ["v9"]})]
    ops[1] = ops[1].model_copy(update={"cardinality": None})
    _, data = findings_of(validation(ending(before=ops)))
    assert data.edit is not None
    assert data.edit.changes == (Insert("v2", "cache", {"elements": 1600}),)


def test_what_python_makes_is_its_author_s_to_cache() -> None:
    _, data = findings_of(validation(ending(before=decoding(graph_ops={"EagerPyFunc": 1}))))
    assert data.effect_on_results == "not known"
    assert data.condition is not None
    assert data.edit is not None


def test_python_that_changes_something_is_not_cached_for_a_trial() -> None:
    decode = decoding(graph_ops={"EagerPyFunc": 1})
    changing = make_function(graph_ops={"EagerPyFunc": 1}, side_effect="it changes `seen`")
    decode[1] = decode[1].model_copy(update={"function": changing})
    _, data = findings_of(validation(ending(before=decode)))
    assert data.edit is None


def test_a_cache_behind_a_shuffle_keeps_one_order() -> None:
    source, decode, batch = decoding()
    shuffle = written("v0", "shuffle", 30, "v1")
    ops = [source, shuffle, decode.model_copy(update={"parent_ids": ["v0"]}), batch]
    _, data = findings_of(validation(ending(before=ops)))
    assert data.effect_on_results == "same up to order or rounding"


def test_a_cache_larger_than_half_of_the_memory_is_not_advised() -> None:
    ops = decoding()
    ops[2] = ops[2].model_copy(update={"element_bytes": 2**29})
    loops = [make_loop(), validation(ending(before=ops))]
    session = session_with(evaluated(40.0), loops=loops)
    host = make_host(available_bytes=8 * 2**30)
    (_finding,) = run(COSTLY_EVALUATION, session.model_copy(update={"host": host}))
    host = make_host(available_bytes=10 * 2**30)
    assert len(run(COSTLY_EVALUATION, session.model_copy(update={"host": host}))) == 2


def test_how_much_a_cache_would_have_to_hold_must_be_known_to_try_it() -> None:
    ops = decoding()
    unsaid = {"parameters": {}, "cardinality": None}
    shuffle = written("v0", "shuffle", 33, "v2")
    batch = ops[2].model_copy(update={"parent_ids": ["v0"], **unsaid})
    _, data = findings_of(validation(ending(before=[*ops[:2], shuffle, batch])))
    assert data.edit is None
    assert data.trial.reason == "How many elements a cache of it would hold is not known."


def test_one_evaluation_fills_a_cache_for_none() -> None:
    (finding,) = findings_of(validation(), count=1)
    assert finding.status == "informative"


def test_a_cache_that_saves_little_of_the_run_only_informs() -> None:
    little = Evaluation(steps=32, step_ms=10.0, consumer_ms=8.0)
    _, data = findings_of(validation(evaluation=little))
    assert (data.status, data.edit is not None) == ("informative", True)
    hardly = Evaluation(steps=32, step_ms=10.0, consumer_ms=9.0)
    assert len(findings_of(validation(evaluation=hardly))) == 1


LOOKUP = {"stateful": True, "graph_ops": {"LookupTableFindV2": 1}}


def test_a_map_that_tensorflow_keeps_serial_is_tried_in_parallel() -> None:
    _, _cache, calls = findings_of(validation(ending(before=decoding(**LOOKUP))))
    assert (calls.status, calls.part, calls.line) == ("fail", "evaluation", 31)
    assert calls.effect_on_results == "same results"
    assert calls.edit == Edit(
        id="costly-evaluation:parallel:v2",
        label="num_parallel_calls=AUTOTUNE on the map in line 31, for the evaluation",
        changes=(SetParameters("v2", {"num_parallel_calls": AUTOTUNE}),),
        loop_id="loop_1",
    )
    # Of 40 s, 80 % are waits, which as many calls as there are CPUs divide.
    assert saved_s(calls) == pytest.approx(40.0 * 0.8 / 2)


def test_what_is_parallel_already_is_left_alone() -> None:
    ops = decoding(**LOOKUP)
    given = ops[1].model_copy(update={"parameters": {"num_parallel_calls": -1}})
    assert len(findings_of(validation(ending(before=[ops[0], given, ops[2]])))) == 2


@pytest.mark.parametrize(
    ("graph_ops", "effect"),
    [
        ({"EagerPyFunc": 1}, "not known"),
        ({"RandomUniform": 1}, "same up to order or rounding"),
    ],
)
def test_what_is_random_or_python_s_is_not_promised_to_stay(
    graph_ops: dict[str, int], effect: str
) -> None:
    ops = decoding(stateful=True, graph_ops=graph_ops)
    found = findings_of(validation(ending(before=ops)))
    assert [one.effect_on_results for one in found if one.edit and "parallel" in one.edit.id] == [
        effect
    ]


def test_one_evaluation_gains_from_parallel_calls_as_any() -> None:
    found = findings_of(validation(ending(before=decoding(**LOOKUP))), count=1)
    assert [one.status for one in found] == ["informative", "fail"]


OFF = {"optimization.apply_default_optimizations": False}


def test_a_prefetch_is_advised_only_where_tensorflow_appends_none() -> None:
    half = Evaluation(steps=32, step_ms=10.0, consumer_ms=5.0)
    off = ending().model_copy(update={"options": OFF})
    _, _cache, ahead = findings_of(validation(off, evaluation=half))
    # Of 10 ms 5 are waits, which fit beside the others.
    assert ahead.speedup_at_most == pytest.approx(2.0)
    assert saved_s(ahead) == pytest.approx(20.0)
    assert (ahead.edit, ahead.effect_on_results) == (None, "same results")
    assert "nothing is evaluated for a trial" in str(ahead.trial.reason)
