"""The rules on Python that makes elements: when they fail, and when their edits are tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.python_input import PYTHON_EACH_ROW, SINGLE_ELEMENTS, SLOW_CALL
from pipediag.session.edits import Move, Replace, RewriteCall
from pipediag.session.findings import Finding
from pipediag.session.model import HotLine, Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, cases, decided, keeps_up, only, session_of, source

DRAWS = "drawn = rng.choice(words, 5, p=weights)"


def found(code: str | None, percent: float = 80.0, self_ms: float = 6.0, **line: Any) -> Finding:
    op = make_operation("rows", "from_generator", elements=1.0, self_ms_per_step=self_ms)
    values: dict[str, Any] = {"file": "data.py", "line": 7, "function": "rows", "thread": "source"}
    hot = HotLine(percent=percent, code=code, **{**values, **line})
    return only(SLOW_CALL, session_of(op, host=make_host(hot_python=[hot])))


def test_a_draw_with_weights_is_rewritten() -> None:
    finding = found(DRAWS)

    assert finding.status == "fail"
    assert (finding.file, finding.line) == ("data.py", 7)
    assert finding.edit is not None
    assert finding.edit.changes == (RewriteCall("rows", "data.py", 7, "rows"),)


@pytest.mark.parametrize(
    "code",
    [
        "row = json.loads(line)",
        "row = frame.iloc[i]",
        "for _, row in frame.iterrows():",
        "seen = np.append(seen, row)",
        "key = hashlib.md5(text).hexdigest()",
        "yield tf.cast(row, tf.float32)",
        "loss = float(value.numpy())",
    ],
)
def test_other_known_calls_are_advice_without_an_edit(code: str) -> None:
    finding = found(code)

    assert finding.status == "fail"
    assert finding.edit is None


@pytest.mark.parametrize(
    ("code", "overrides"),
    [
        ("drawn = rng.choice(words, 5)", {}),
        ("ds = tf.data.Dataset.range(3)", {}),
        (None, {}),
        (DRAWS, {"percent": 2.0}),
        (DRAWS, {"thread": "training"}),
        (DRAWS, {"self_ms": 0.01}),
    ],
)
def test_what_is_not_known_or_costs_little_passes(
    code: str | None, overrides: dict[str, Any]
) -> None:
    assert found(code, **overrides).status != "fail"


def single(**overrides: Any) -> Finding:
    values: dict[str, Any] = {"elements": 128.0, "self_ms_per_step": 6.0, "element_bytes": 24}
    op = make_operation("rows", "from_generator", **{**values, **overrides})
    return only(SINGLE_ELEMENTS, session_of(op))


@pytest.mark.parametrize(
    ("element_bytes", "parameters"),
    [(24, {"elements": 64}), (None, {"elements": 64, "ragged": True})],
)
def test_single_elements_are_handed_over_in_stacks(
    element_bytes: int | None, parameters: dict[str, Any]
) -> None:
    finding = single(element_bytes=element_bytes)

    assert finding.status == "fail"
    assert finding.edit is not None
    assert finding.edit.check == "equal"
    assert finding.edit.changes == (Replace("rows", "in_chunks", parameters),)


@pytest.mark.parametrize(
    "overrides",
    [
        {"elements": 1.0},
        {"elements": None},
        {"self_ms_per_step": 0.01},
        {"made_by_framework": True},
        {"inside_function_of": "outer"},
    ],
)
def test_batches_and_what_costs_little_pass(overrides: dict[str, Any]) -> None:
    assert single(**overrides).status == "pass"


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


@cases(
    {
        "costly calls": (rows(python_map()), ("fail", ROWS)),
        "shuffle between": (rows(python_map(), SHUFFLE), ("fail", ROWS)),
        "map between": (rows(python_map(), PLAIN), ("fail", (*ROWS, Move("plain", "map")))),
        "costly Python": (rows(python_map(**COSTLY)), ("informative", ROWS)),
        "around it, too": (rows(python_map(python="EagerPyFunc", **COSTLY)), ("fail", ROWS)),
        "waits": (rows(python_map(python="EagerPyFunc", **WAITING)), ("informative", ROWS)),
        "not measured": (rows(python_map(python_wall_ms_per_step=None)), ("fail", ROWS)),
        "keeps up": (rows(python_map(), **keeps_up()), ("informative", None)),
        "state": (rows(python_map(effect="it changes `seen`")), ("pass", None)),
        "draws": (rows(python_map(ops={"RandomUniform": 1})), ("pass", None)),
        "padded": (session_of(source(), python_map(), PADDED), ("pass", None)),
        "filter between": (rows(python_map(), make_operation("f", "filter")), ("pass", None)),
        "take between": (rows(python_map(), make_operation("t", "take")), ("pass", None)),
        "no Python": (rows(PLAIN), ("pass", None)),
        "of batches": (session_of(source(), batch(128), python_map()), ("pass", None)),
    },
    "session, expected",
)
def test_python_of_a_map_is_called_once_a_batch(session: Session, expected: object) -> None:
    assert decided(PYTHON_EACH_ROW, session) == expected
