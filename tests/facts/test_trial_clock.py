from __future__ import annotations

import pytest

from pipediag.facts.devices import block_start_ms
from tests.reporters import trial_sessions


@pytest.mark.parametrize(
    ("start_ms", "since_began_ms", "expected"),
    [(6000.0, 500.0, 6500.0), (None, 500.0, None), (6000.0, None, None)],
)
def test_a_block_stands_on_the_clock_of_the_windows(
    start_ms: float | None, since_began_ms: float | None, expected: float | None
) -> None:
    run = trial_sessions.make_run(start_ms=start_ms)
    block = run.blocks[0].model_copy(update={"since_began_ms": since_began_ms})

    assert block_start_ms(run, block) == expected
