"""The rule on known slow calls in a generator: when it fails, and when its edit is tried."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.python_input import SINGLE_ELEMENTS, SLOW_CALL
from pipediag.session.edits import Replace, RewriteCall
from pipediag.session.findings import Finding
from pipediag.session.model import HotLine
from tests.factories import make_host
from tests.records import make_function, make_operation
from tests.rules.sessions import only, session_of

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


def test_a_line_that_may_belong_to_other_python_is_left_alone() -> None:
    op = make_operation("rows", "from_generator", elements=1.0, self_ms_per_step=6.0)
    numpy = make_function(graph_ops={"PyFunc": 1}, stateful=True)
    other = make_operation("parse", "map", function=numpy)
    hot = HotLine(
        file="data.py", line=7, function="parse", percent=80.0, thread="source", code=DRAWS
    )
    assert only(SLOW_CALL, session_of(op, other, host=make_host(hot_python=[hot]))).status == "pass"


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
