from __future__ import annotations

import pytest

from pipediag.cli.ending import analyze_status
from pipediag.errors import ExitStatus

FAILURE = "It ended before enough steps were seen."


@pytest.mark.parametrize(
    ("failure", "status", "gate", "run_to_end", "expected"),
    [
        (None, None, None, False, ExitStatus.DONE),
        (None, 1, None, False, ExitStatus.DONE),
        (FAILURE, 1, None, False, ExitStatus.SCRIPT_FAILED),
        (FAILURE, -9, None, False, ExitStatus.SCRIPT_FAILED),
        (FAILURE, None, None, False, ExitStatus.SCRIPT_FAILED),
        (None, None, ExitStatus.GATE_FAILED, False, ExitStatus.GATE_FAILED),
        (None, None, ExitStatus.INCONCLUSIVE, False, ExitStatus.INCONCLUSIVE),
        (FAILURE, 1, ExitStatus.SCRIPT_FAILED, False, ExitStatus.SCRIPT_FAILED),
        (None, 0, None, True, 0),
        (None, 7, None, True, 7),
        (FAILURE, 7, None, True, 7),
        (FAILURE, -15, None, True, -15),
        (FAILURE, None, None, True, ExitStatus.SCRIPT_FAILED),
        (None, 0, ExitStatus.GATE_FAILED, True, ExitStatus.GATE_FAILED),
        (None, 7, ExitStatus.GATE_FAILED, True, 7),
    ],
)
def test_the_contract(
    failure: str | None,
    status: int | None,
    gate: ExitStatus | None,
    run_to_end: bool,
    expected: int,
) -> None:
    given = analyze_status(
        script_failure=failure, script_status=status, gate=gate, run_to_end=run_to_end
    )

    assert given == expected


@pytest.mark.parametrize(
    ("failure", "gate", "run_to_end", "expected"),
    [
        (None, None, False, ExitStatus.USAGE),
        (None, ExitStatus.DONE, False, ExitStatus.USAGE),
        (None, ExitStatus.GATE_FAILED, False, ExitStatus.GATE_FAILED),
        (FAILURE, None, False, ExitStatus.SCRIPT_FAILED),
        (None, None, True, ExitStatus.DONE),
    ],
)
def test_reports_that_could_not_be_written_show_where_the_status_would_be_0(
    failure: str | None, gate: ExitStatus | None, run_to_end: bool, expected: int
) -> None:
    given = analyze_status(
        script_failure=failure,
        script_status=0,
        gate=gate,
        run_to_end=run_to_end,
        reports_written=False,
    )

    assert given == expected
