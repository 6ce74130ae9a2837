"""Two recordings of each labelled script give the same answer, and no cause that is false.

`python -m tests.recorded.keep` keeps them, and `python -m tests.recorded.test_recorded_sessions`
writes what they decide today into `decisions.json`: a change of it is a change of the product.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from benchmarks.diagnosis import labelled
from pipediag.session.model import Session
from tests.recorded.judging import (
    SESSIONS,
    answer,
    decisions,
    false_causes,
    judged_anew,
    recorded_session,
)

DECISIONS = Path(__file__).parent / "decisions.json"
RECORDINGS = sorted(SESSIONS.glob("*.json.gz"))
SCRIPTS = sorted({path.name.partition("-")[0] for path in RECORDINGS})


def _name(path: Path) -> str:
    return path.name.removesuffix(".json.gz")


@cache
def _judged(path: Path) -> Session:
    return judged_anew(recorded_session(path))


@pytest.mark.parametrize("script", SCRIPTS)
def test_both_recordings_of_a_script_are_judged_alike(script: str) -> None:
    first, second = (
        answer(_judged(path)) for path in RECORDINGS if path.name.startswith(f"{script}-")
    )
    assert first == second


@pytest.mark.parametrize("recording", RECORDINGS, ids=_name)
def test_no_cause_is_stated_that_the_script_does_not_have(recording: Path) -> None:
    [expected] = labelled([recording.name.partition("-")[0]])
    assert false_causes(expected, _judged(recording)) == []


@pytest.mark.parametrize("recording", RECORDINGS, ids=_name)
def test_what_is_decided_is_what_was_decided(recording: Path) -> None:
    known = json.loads(DECISIONS.read_text(encoding="utf-8"))
    found = decisions(_judged(recording))
    assert json.loads(json.dumps(found)) == known[_name(recording)]


def main() -> None:
    """Write what the recordings decide."""
    lines = [
        f"{json.dumps(_name(path))}: {json.dumps(decisions(_judged(path)))}" for path in RECORDINGS
    ]
    DECISIONS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
