"""Python that makes the input: generators, PyDatasets, and what runs while tracing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.maps import PYTHON_EACH_ROW
from pipediag.rules.python_input import (
    PYTHON_INPUT,
    SINGLE_ELEMENTS,
    SLOW_CALL,
    SLOW_CALL_IN_STEP,
    TRACE_ONLY_PYTHON,
    with_rewriting,
)
from pipediag.session.edits import IN_PROCESSES, Move, Remove, Replace, RewriteCall, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import HotLine, Session
from pipediag.session.pipeline import Operation
from pipediag.session.trials import Trial
from pipediag.vocabulary import TrialState
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.records import make_breakdown, make_function, make_operation
from tests.rules.sessions import (
    batch,
    changes,
    decides,
    keeps_up,
    only,
    run,
    session_of,
    source,
    tried,
)

LINE = HotLine(file="data.py", line=7, function="rows", percent=80.0, thread="source")
SEEN = make_host(hot_python=[LINE])
SLEEPS = {
    "python_calls_per_step": 1.0,
    "python_wall_ms_per_step": 6.0,
    "python_cpu_ms_per_step": 0.3,
}
COMPUTES = {**SLEEPS, "python_cpu_ms_per_step": 5.9}
THREADS = SetOptions({"threading.private_threadpool_size": 16})


def generator(**overrides: Any) -> Operation:
    values: dict[str, Any] = {"elements": 1.0, "self_ms_per_step": 6.0}
    return make_operation("rows", "from_generator", **{**values, **overrides})


def generated(*ops: Operation, **overrides: Any) -> Session:
    return session_of(*ops, **{"host": SEEN, **overrides})


def at_once(op: str, count: int) -> object:
    calls = {"cycle_length": count, "num_parallel_calls": count}
    return ("fail", (Replace(op, "interleave", calls), THREADS))


def outer(kind: str, **parameters: Any) -> Operation:
    return make_operation(
        "outer", kind, self_ms_per_step=6.0, function=make_function(), parameters=parameters
    )


INNER = generator(inside_function_of="outer")
ZIP = make_operation("zip", "zip")
READ_AT_ONCE = outer("interleave", num_parallel_calls=4, cycle_length=4)


test_a_generator = decides(
    PYTHON_INPUT,
    {
        "waits": (generated(generator(**SLEEPS)), at_once("rows", 2)),
        "read in turn": (
            generated(source(cardinality=8), INNER, outer("flat_map"), batch()),
            at_once("outer", 8),
        ),
        "read in turn and zipped": (
            generated(source(cardinality=8), INNER, outer("flat_map"), batch(), ZIP),
            "fail",
        ),
        "read at once": (generated(source(), INNER, READ_AT_ONCE, batch()), "pass"),
    },
)


def given_to_fit(
    measured: dict[str, float], keras: dict[str, Any] | None = None, **overrides: Any
) -> Session:
    values = {"data_adapter": "PyDatasetAdapter", "source": "Stored", "workers": 1}
    at = {"source_file": "data.py", "source_line": 3}
    ops = (
        generator(made_by_framework=True, **measured),
        make_operation("ahead", "prefetch", made_by_framework=True),
    )
    loop = make_loop(keras=make_keras(**{**values, **at, **(keras or {})}))
    return generated(*ops, **{"loops": [loop], **overrides})


def workers(**parameters: int) -> object:
    threads = SetOptions({"autotune.enabled": False, "threading.private_threadpool_size": 1})
    return ("fail", (Replace("rows", "PyDataset", parameters), Remove("ahead"), threads))


GENERATOR = {"data_adapter": "GeneratorDataAdapter", "source": "pairs"}


test_what_is_given_to_fit = decides(
    PYTHON_INPUT,
    {
        "unmeasured": (given_to_fit({}), workers(workers=2)),
        "waits": (given_to_fit(SLEEPS), workers(workers=16, max_queue_size=32)),
        "keeps up": (given_to_fit(SLEEPS, **keeps_up()), "pass"),
        "generator": (given_to_fit(COMPUTES, GENERATOR), "fail"),
        "Keras 2": (given_to_fit(COMPUTES, {"data_adapter": "KerasSequenceAdapter"}), "fail"),
    },
)


@pytest.mark.parametrize("state", ["refuted", "confirmed", "inconclusive", "not_tried"])
def test_where_several_calls_at_once_gain_nothing_a_rewrite_is_left(state: TrialState) -> None:
    session = generated(generator(), batch())
    (finding,) = run(PYTHON_INPUT, session)
    ended = finding.but(trial=Trial(state=state, reason=None, speedup=1.0))
    rest = [one for one in with_rewriting(session, [ended]) if one is not ended]
    assert len(rest) == (state == "refuted")
    for one in rest:
        assert (one.status, one.edit, one.trial.state) == ("fail", None, "not_tried")
        assert (one.op_id, one.speedup_at_most) == (finding.op_id, finding.speedup_at_most)
    cached = finding.but(rule="missing-cache", trial=Trial(state="confirmed", reason=None))
    assert with_rewriting(session, [ended, cached]) == [ended, cached]


def traced(names: list[str], graph_ops: dict[str, int] | None = None, **op: Any) -> Session:
    function = make_function(python_calls=names, graph_ops=graph_ops or {"Mul": 1})
    mapped = make_operation("map", "map", **{"function": function, **op})
    return session_of(source(), mapped, batch())


DRAWS = ["numpy.random.uniform"]


@pytest.mark.parametrize(
    ("session", "status"),
    [
        (traced(["time.sleep"]), "informative"),
        (traced(DRAWS), "informative"),
        (traced(["time.sleep"], {"PyFunc": 1}), "pass"),
        (traced(["print"], {"PrintV2": 1}), "pass"),
        (traced(DRAWS, {"RandomUniform": 1}), "pass"),
        (traced(["numpy.float32", "train.print"], {"Cast": 1}), "pass"),
        (traced([], function=None), "pass"),
        (make_session(pipeline=None), "inconclusive"),
    ],
)
def test_python_that_runs_while_a_function_is_traced(session: Session, status: str) -> None:
    finding = only(TRACE_ONLY_PYTHON, session)
    assert (finding.status, changes(finding)) == (status, None)
    assert finding.op_id == ("map" if status == "informative" else None)


WEIGHTED = "drawn = rng.choice(words, 5, p=weights)"


def found(
    code: str | None,
    percent: float = 80.0,
    self_ms: float = 6.0,
    of_keras: bool = False,
    **line: Any,
) -> Finding:
    op = generator(self_ms_per_step=self_ms, made_by_framework=of_keras)
    hot = LINE.but(percent=percent, code=code, **line)
    return only(SLOW_CALL, session_of(op, host=make_host(hot_python=[hot])))


@pytest.mark.parametrize("of_keras", [False, True])
@pytest.mark.parametrize(
    "code",
    [
        WEIGHTED,
        "rng.choice(9, 5, True, p)",
        "rng.choice(len(words), 5, True, p)",
        "for _, row in frame.sample(frac=1).iterrows():",
    ],
)
def test_a_draw_with_weights_and_rows_of_a_frame_are_rewritten(code: str, of_keras: bool) -> None:
    finding = found(code, of_keras=of_keras)
    assert (finding.file, finding.line) == ("data.py", 7)
    assert tried(finding) == ("fail", True)
    assert changes(finding) == (RewriteCall("rows", "data.py", 7, "rows"),)


@pytest.mark.parametrize(
    ("code", "percent", "kind", "status", "rewritten"),
    [
        (WEIGHTED, 60.0, "tf_function", "fail", True),
        (WEIGHTED, 60.0, "keras", "pass", False),
        (WEIGHTED, 4.0, "tf_function", "pass", False),
        ("row = json.loads(line)", 60.0, "tf_function", "fail", False),
        ("loss = step(batch).numpy()", 60.0, "eager", "pass", False),
    ],
)
def test_slow_calls_of_a_loop_s_own_python(
    code: str, percent: float, kind: str, status: str, rewritten: bool
) -> None:
    loop = make_loop(kind=kind, keras=None, from_python=True)
    hot = LINE.but(percent=percent, code=code, thread="main")
    session = make_session(
        loops=[loop], host=make_host(hot_python=[hot]), breakdown=make_breakdown(python=60.0)
    )
    finding = only(SLOW_CALL_IN_STEP, session)
    assert tried(finding) == (status, rewritten)
    if rewritten:
        assert changes(finding) == (RewriteCall(None, "data.py", 7, "rows"),)


def test_draws_of_one_function_are_rewritten_together() -> None:
    other = WEIGHTED.replace("p=", "replace=False, p=")
    lines = [(9, "rows", WEIGHTED), (7, "rows", WEIGHTED), (8, "rows", other), (3, "f", WEIGHTED)]
    hot = [
        LINE.but(line=at, function=name, percent=4.0 * at, code=code) for at, name, code in lines
    ]
    finding = only(SLOW_CALL, session_of(generator(), host=make_host(hot_python=hot)))
    assert [one.line for one in changes(finding)] == [7, 9]


def test_the_slowest_line_and_the_slowest_that_is_rewritten_have_their_own_bounds() -> None:
    lines = [(3, "both = np.concatenate([a, b])", 40.0), (7, WEIGHTED, 20.0), (9, "pass", 20.0)]
    hot = [LINE.but(line=at, percent=percent, code=code) for at, code, percent in lines]
    session = session_of(generator(self_ms_per_step=6.0), host=make_host(hot_python=hot))
    found = run(SLOW_CALL, session)
    assert [(one.line, one.edit is not None) for one in found] == [(3, False), (7, True)]
    first, second = (one.speedup_at_most for one in found)
    assert first is not None
    assert second is not None
    assert 1.0 < second < first


@pytest.mark.parametrize(
    "code",
    [
        "row = json.loads(line)",
        "return np.random.choice(len(items), size=8, replace=False)",
        "inputs.append(to_categorical(ids, num_classes=60))",
        "row = frame.iloc[i]",
        "drawn = random.choices(range(9), weights=p, k=3)",
        "key = hashlib.md5(text).hexdigest()",
        "rows = frame.iterrows()",
        "seen = np.append(seen, row)",
        "yield tf.cast(row, tf.float32)",
        "loss = float(value.numpy())",
    ],
)
def test_other_known_calls_are_advice_without_an_edit(code: str) -> None:
    assert tried(found(code)) == ("fail", False)


@pytest.mark.parametrize(
    ("code", "overrides"),
    [
        ("drawn = rng.choice(words, 5)", {}),
        (WEIGHTED.replace("p=", "replace=False, p="), {}),
        (WEIGHTED.replace("p=", "False, p="), {}),
        ("yield self.example(random.choice(users), True, rng)", {}),
        (WEIGHTED.replace("rng", "np.random").replace("p=", "replace=False, p="), {}),
        ("image = tf.keras.utils.load_img(path)", {}),
        ("x = tf.keras.applications.resnet50.preprocess_input(batch)", {}),
        (None, {}),
        (WEIGHTED, {"thread": "training"}),
        (WEIGHTED, {"self_ms": 0.01}),
    ],
)
def test_what_is_not_known_or_costs_little_passes(
    code: str | None, overrides: dict[str, Any]
) -> None:
    assert found(code, **overrides).status != "fail"


def single(*then: Operation, **overrides: Any) -> Session:
    return session_of(generator(**{"elements": 128.0, **overrides}), *then)


STACKS = (Replace("rows", "in_chunks", {"elements": 64}),)
test_single_elements_are_handed_over_in_stacks = decides(
    SINGLE_ELEMENTS,
    {
        "single": (single(), ("fail", STACKS)),
        "split again": (single(make_operation("split", "unbatch")), "pass"),
        "batches": (single(elements=1.0), "pass"),
        "costs little": (single(self_ms_per_step=0.01), "pass"),
        "of Keras": (single(made_by_framework=True), "pass"),
    },
)


def test_stacks_have_to_give_equal_elements() -> None:
    assert only(SINGLE_ELEMENTS, single()).edit.check == "equal"


def python_map(**overrides: Any) -> Operation:
    graph_ops = {overrides.pop("python", "PyFunc"): 1, **overrides.pop("ops", {})}
    function = make_function(stateful=True, graph_ops=graph_ops)
    values: dict[str, Any] = {
        "elements": 128.0,
        "self_ms_per_step": 6.0,
        "function": replace(function, side_effect=overrides.pop("effect", None)),
        "python_calls_per_step": 128.0,
        "python_wall_ms_per_step": 1.0,
        "python_cpu_ms_per_step": 1.0,
    }
    return make_operation(overrides.pop("id", "map"), "map", **{**values, **overrides})


def rows(*ops: Operation, **overrides: Any) -> Session:
    return session_of(source(), *ops, batch(128), **overrides)


ROWS = (Move("map", "batch"),)
PLAIN = make_operation("plain", "map", function=make_function(graph_ops={"Cast": 1}))
SHUFFLE = make_operation("shuffle", "shuffle")
COSTLY = {"python_wall_ms_per_step": 5.9, "python_cpu_ms_per_step": 5.8}
WAITING = {"python_wall_ms_per_step": 5.9, "python_cpu_ms_per_step": 0.1}
PADDED = make_operation("padded", "padded_batch")


test_python_of_a_map_is_called_once_a_batch = decides(
    PYTHON_EACH_ROW,
    {
        "costly calls": (rows(python_map()), ("fail", ROWS)),
        "shuffle between": (rows(python_map(), SHUFFLE), ("fail", ROWS)),
        "map between": (rows(python_map(), PLAIN), ("fail", (*ROWS, Move("plain", "map")))),
        "costly Python": (
            rows(python_map(**COSTLY, python="PyFuncStateless")),
            ("informative", ROWS),
        ),
        "waits": (rows(python_map(python="EagerPyFunc", **WAITING)), ("informative", ROWS)),
        "not measured": (rows(python_map(python_wall_ms_per_step=None)), ("fail", ROWS)),
        "keeps up": (rows(python_map(), **keeps_up()), "pass"),
        "state": (rows(python_map(effect="it changes `seen`")), "pass"),
        "draws": (rows(python_map(ops={"RandomUniform": 1})), "pass"),
        "padded": (session_of(source(), python_map(), PADDED), "pass"),
        "filter between": (rows(python_map(), make_operation("f", "filter")), "pass"),
    },
)


def test_python_that_computes_long_enough_is_also_called_in_processes() -> None:
    once, in_processes = run(PYTHON_EACH_ROW, rows(python_map(**COSTLY)))
    assert changes(once) == ROWS
    assert changes(in_processes) == (*ROWS, Replace("map", IN_PROCESSES, {"processes": 2}))
    assert in_processes.edit.check == "equal"


@pytest.mark.parametrize(
    ("code", "percent_of_another", "first"),
    [
        ("inputs.append(to_categorical(ids))", 0.0, "slow-python-call"),
        ("inputs.append(to_categorical(ids))", 90.0, None),  # it is not most of the Python
        ("rows.append(ids)", 0.0, None),
    ],
)
def test_a_known_slow_line_that_is_most_of_it_goes_before_a_rewrite(
    code: str, percent_of_another: float, first: str | None
) -> None:
    lines = [LINE.but(code=code)]
    if percent_of_another:
        lines.append(LINE.but(line=9, percent=percent_of_another))
    finding = only(PYTHON_INPUT, generated(generator(), host=make_host(hot_python=lines)))
    assert (finding.status, finding.needs_first) == ("fail", first)
