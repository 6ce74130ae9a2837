from __future__ import annotations

import resource
import signal
import subprocess
import sys

import pytest

from pipediag.runner.death import describe_death
from pipediag.sensors.cgroup import MemoryShortage
from tests.probe import environment


@pytest.mark.parametrize(
    ("number", "shortage", "words"),
    [
        (signal.SIGKILL, None, "kernel log"),
        (signal.SIGKILL, "group", "because the control group ran out of its memory"),
        (signal.SIGKILL, "elsewhere", "not at a limit of its control group"),
        (signal.SIGKILL, "unknown", "The kernel killed it (SIGKILL) for want of memory."),
        (signal.SIGSEGV, None, "crashed in native code (SIGSEGV)"),
        (signal.SIGTERM, None, "ended by SIGTERM"),
        (signal.SIGTERM, "group", "ended by SIGTERM"),
        (63, None, "ended by signal 63"),
    ],
)
def test_a_sentence_for_each_death(
    number: int, shortage: MemoryShortage | None, words: str
) -> None:
    assert words in describe_death(number, shortage)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_dies_the_same_way_without_a_core_file(number: int) -> None:
    code = f"from pipediag.runner.death import die_by; die_by({int(number)})"

    done = subprocess.run([sys.executable, "-c", code], env=environment(), check=False)

    assert done.returncode == -number
    assert resource.getrlimit(resource.RLIMIT_CORE)  # ours is as it was
