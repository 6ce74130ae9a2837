"""One measurement at a time, in whichever process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipediag.pytest_plugin.measurements import MachineTakenError, machine_lock
from tests.probe import environment
from tests.pytest_plugin.conftest import Library

pytest_plugins = ["pytester"]

HOLDING = """
import sys
from pathlib import Path
from pipediag.pytest_plugin.measurements import machine_lock

with machine_lock(0, Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_who_waited_long_enough_goes_without(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with (
        machine_lock(0.0, lock),
        pytest.raises(MachineTakenError),
        machine_lock(0.0, lock),
    ):
        pytest.fail("two hold it")


def test_it_holds_against_another_process_until_that_ends(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(MachineTakenError), machine_lock(0.0, lock):
            pytest.fail("two hold it")
        holder.kill()
        holder.wait()
    with machine_lock(0.0, lock):
        pass


def test_a_child_that_was_forked_meanwhile_does_not_keep_it(tmp_path: Path) -> None:
    """Its descriptor is a copy, like this one."""
    with machine_lock(0.0, tmp_path / "lock") as held:
        assert held is not None
        copy = os.dup(held)
    with machine_lock(0.0, tmp_path / "lock"):
        os.close(copy)


def test_a_test_that_waited_in_vain_is_skipped(
    pytester: pytest.Pytester, library: Library, tmp_path: Path
) -> None:
    pytester.makeini("[pytest]\npipediag_wait_s = 0\n")
    pytester.makepyfile(test_it="def test_it(pipediag):\n    pipediag.profile(1, 2)\n")
    with machine_lock(0.0, tmp_path / f"pipediag-{os.getuid()}.lock"):
        result = pytester.runpytest_inprocess("-rs", "-vv")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        ["SKIPPED*test_it.py:2: Other processes have measured on this machine for 0 s*"]
    )
    assert library.calls == []
