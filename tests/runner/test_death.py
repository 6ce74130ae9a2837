from __future__ import annotations

import resource
import signal
import subprocess
import sys

import pytest

from pipediag.runner.death import describe_death
from tests.runner.probe import environment


@pytest.mark.parametrize(
    ("number", "out_of_memory", "words"),
    [
        (signal.SIGKILL, False, "kernel log"),
        (signal.SIGKILL, True, "ran out of its memory"),
        (signal.SIGSEGV, False, "crashed in native code (SIGSEGV)"),
        (signal.SIGTERM, False, "ended by SIGTERM"),
        (63, False, "ended by signal 63"),
    ],
)
def test_a_sentence_for_each_death(number: int, out_of_memory: bool, words: str) -> None:
    assert words in describe_death(number, out_of_memory)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_dies_the_same_way_without_a_core_file(number: int) -> None:
    code = f"from pipediag.runner.death import die_by; die_by({int(number)})"

    done = subprocess.run([sys.executable, "-c", code], env=environment(), check=False)

    assert done.returncode == -number
    assert resource.getrlimit(resource.RLIMIT_CORE)  # ours is as it was
