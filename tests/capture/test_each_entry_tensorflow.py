"""Each way from the script into our code fails in turn: the script must not see it.

The entries are asked of the guard itself, so that a new one is tried, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.capture.captured import environment

pytestmark = pytest.mark.tensorflow

LIMIT_S = 280
SCRIPT = Path(__file__).with_name("each_entry.py")
# Reached while TensorFlow is being imported, by a step while stacks are
# sampled, or by hundreds of steps: frameworks/test_tensorflow.py,
# frameworks/test_callbacks.py and measuring/test_sampling.py let those fail.
NOT_BY_THESE_PARTS = {
    "clocking callbacks",
    "measuring the Python functions of pipelines",
    "noting short steps",
    "watching loops inside tf.functions",
}


def run(how: str, directory: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), how, str(directory)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert results, done.stderr
    result: dict[str, Any] = json.loads(results[0].removeprefix("RESULT "))
    return result


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    facts: dict[str, Any] = run("natively", tmp_path_factory.mktemp("native"))["facts"]
    return facts


def test_no_entry_that_fails_reaches_the_script(tmp_path: Path, native: dict[str, Any]) -> None:
    result = run("each", tmp_path)

    assert result["facts"] == native
    assert set(result["unreached"]) <= NOT_BY_THESE_PARTS
    assert len(result["broken"]) >= 20
    for broken in result["broken"]:
        assert broken["facts"] == native[broken["part"]], broken
        if not broken["called"]:
            # Whether a part reaches these hangs on when steps are measured.
            assert broken["what"] in NOT_BY_THESE_PARTS, broken
            continue
        assert broken["aside"], broken
        if broken["what"] in NOT_BY_THESE_PARTS and not broken["notes"]:
            continue  # it was reached by chance: on a slow machine a window ends by time
        assert broken["notes"] == [
            f"Pipediag stopped {broken['what']} after an error of its own, which the script did "
            "not see: BugError: of ours"
        ]


def test_hooks_that_cannot_be_installed_leave_the_script_alone(
    tmp_path: Path, native: dict[str, Any]
) -> None:
    result = run("unhooked", tmp_path)

    assert result["facts"] == native
    assert len(result["notes"]) >= 12
    assert all(note.startswith("Pipediag stopped hooking into ") for note in result["notes"])
