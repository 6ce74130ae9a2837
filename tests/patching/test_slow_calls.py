"""Draws with weights, rewritten with sums that are made once: the same numbers, or a refusal."""

from __future__ import annotations

import numpy as np
import pytest

from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.slow_calls import drawn_from_cumulative
from pipediag.patching.source import Source

SCRIPT = """\
import numpy as np


def draws(weights, rng, count):
    for row in range(9):
        {line}
        yield drawn
"""
CALLS = [
    "drawn = rng.choice(len(weights), 4, p=weights)",
    "drawn = rng.choice(count, size=(2, 3), replace=True, p=weights)",
    "drawn = rng.choice(count, p=weights)",
    "drawn = rng.choice(count, 5, True, weights)",
]


def rewritten(text: str, line: int = 6) -> str:
    source = Source.of("train.py", text.encode())
    return source.changed(drawn_from_cumulative(source, line)).text


def drawn_by(text: str) -> list[np.ndarray]:
    names: dict[str, object] = {}
    exec(compile(text, "train.py", "exec"), names)
    weights = np.random.default_rng(3).random(50)
    weights /= weights.sum()
    draws = names["draws"]
    assert callable(draws)
    return list(draws(weights, np.random.default_rng(7), 50))


@pytest.mark.parametrize("call", CALLS)
def test_the_same_numbers_are_drawn(call: str) -> None:
    text = SCRIPT.format(line=call)
    after = rewritten(text)
    assert "choice" not in after
    assert after.index("cumsum") < after.index("for row")
    for own, other in zip(drawn_by(text), drawn_by(after), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize(
    "call",
    [
        "drawn = rng.choice(count, 4)",
        "drawn = rng.choice(count, 4, replace=False, p=weights)",
        "drawn = rng.choice(['a', 'b'], 4, p=weights)",
        "drawn = rng.choice(count, 4, p=weights / weights.sum())" + "; weights = weights[1:]",
        "drawn = rng.choice(count, 4, p=weights.copy())",
        "weights = weights[1:]; drawn = rng.choice(count, 4, p=weights)",
        "weights[row] = 0; drawn = rng.choice(count, 4, p=weights)",
        "weights *= 0.5; drawn = rng.choice(count, 4, p=weights)",
        "drawn = rng.choice(count, 4, p=weights, axis=0)",
        "drawn = [rng.choice(count, p=weights), rng.choice(count, p=weights)]",
        "drawn = choice(count, 4, p=weights)",
    ],
)
def test_what_may_draw_other_numbers_is_refused(call: str) -> None:
    with pytest.raises(NotPatchableError):
        rewritten(SCRIPT.format(line=call))


IN_A_FUNCTION = """\
import numpy as np


def drawn_by(rng, weights, count):
    {line}
    return drawn


def draws(weights, rng, count):
    for row in range(9):
        yield drawn_by(rng, weights, count)
"""


@pytest.mark.parametrize("call", CALLS)
def test_a_function_that_draws_keeps_the_sums_of_the_last_weights(call: str) -> None:
    text = IN_A_FUNCTION.format(line=call)
    after = rewritten(text, 5)
    assert "choice" not in after
    assert after.count("np.cumsum(") == 1
    for own, other in zip(drawn_by(text), drawn_by(after), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize(
    "call",
    [
        "weights = weights / 2; drawn = rng.choice(count, 4, p=weights)",
        "weights[3] = 0; drawn = rng.choice(count, 4, p=weights)",
        "weights *= 2; drawn = rng.choice(count, 4, p=weights)",
    ],
)
def test_weights_that_may_change_from_call_to_call_are_refused(call: str) -> None:
    with pytest.raises(NotPatchableError):
        rewritten(IN_A_FUNCTION.format(line=call), 5)


def test_a_call_outside_any_function_and_loop_is_refused() -> None:
    text = "import numpy as np\nrng = np.random.default_rng()\nx = rng.choice(9, p=weights)\n"
    with pytest.raises(NotPatchableError):
        rewritten(text, 3)


def test_a_name_that_is_taken_is_not_used_again() -> None:
    text = SCRIPT.format(line=CALLS[0]).replace("count", "cumulative")
    after = rewritten(text)
    assert "cumulative_2 = np.cumsum(" in after
