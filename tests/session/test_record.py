from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from pipediag.session.record import build_validators
from pipediag.session.trace_report import TraceHost, TraceReport, TraceSteps

built = lambda: [record.__pydantic_complete__ for record in (TraceReport, TraceHost, TraceSteps)]
print(built())
build_validators(TraceReport)
print(built())
"""


def test_validators_are_built_of_the_record_and_of_those_in_it() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )

    assert said.stdout.splitlines() == ["[False, False, False]", "[True, True, True]"], said.stderr
