"""The end of a script's process: status, output, tracebacks, interrupts, live pipelines."""

from __future__ import annotations

import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.link import how_it_ended
from pipediag.capture.process import HeldInterrupts
from pipediag.child import ending
from pipediag.child.ending import contains, remove_own_frames
from tests.probe import environment


@pytest.mark.parametrize(
    ("code", "status"),
    [(None, 0), (0, 0), (7, 7), (256, 0), (-1, 255), (True, 1), ("text", 1), (1.5, 1), ([], 1)],
)
def test_exit_status_is_the_one_python_would_give(code: object, status: int) -> None:
    assert how_it_ended(SystemExit(code)).status == status


LEAVES = """
import ctypes, sys
from pipediag.child.ending import leave_without_finalising
log = open("log.txt", "w")
log.write("in a text file")
raw = open("raw.bin", "wb")
raw.write(b"in a binary file")
closed = open("closed.txt", "w")
closed.close()
sys.stdout.write("on standard output, ")
class Hang:
    def __del__(self):
        print("never shown")
hang = Hang()
sys.stdout.flush()
ctypes.CDLL(None).printf(b"from C")
leave_without_finalising(5)
"""


def _run(text: str, **options: Any) -> subprocess.CompletedProcess[str]:
    asked: dict[str, Any] = {"env": environment(), "stdout": subprocess.PIPE, **options}
    command = [sys.executable, "-c", text]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **asked)


def test_leaving_without_finalisation_loses_no_output(tmp_path: Path) -> None:
    done = _run(LEAVES, cwd=tmp_path)

    assert (done.stdout, done.returncode) == ("on standard output, from C", 5)
    assert (tmp_path / "log.txt").read_text() == "in a text file"
    assert (tmp_path / "raw.bin").read_bytes() == b"in a binary file"


def test_a_full_standard_output_is_told_by_the_status() -> None:
    text = "from pipediag.child import ending\nprint('x')\nending.leave_without_finalising(0)"
    with Path("/dev/full").open("w") as full:
        done = _run(text, env={**environment(), "PYTHONUNBUFFERED": ""}, stdout=full)

    assert done.returncode == 120


LOGS_ITS_OUTPUT = """
import io, sys
from pipediag.capture.process import HeldInterrupts
from pipediag.child.ending import Ending
class Silent:
    def tell(self, message): pass
class Recorder:
    def script_ended(self, *end): pass
    def let_go(self): return True
class Logger({base}):
    def __init__(self):
        self.terminal, self.log = sys.stdout, open("log.txt", "w")
    def write(self, text):
        self.terminal.write(text)
        self.log.write(text)
    def flush(self):
        sys.__stdout__.flush()
        self.log.flush()
ending = Ending(Silent(), HeldInterrupts())
ending.record_with(Recorder())
sys.stdout = Logger()
print("shown")
ending.begins()
ending.failed(SystemExit(7))
"""


@pytest.mark.parametrize("base", ["", "io.TextIOBase"])
def test_output_that_a_class_of_the_scripts_passes_on_is_flushed(tmp_path: Path, base: str) -> None:
    """Such a class may lack all but `write` and `flush`, and fails once its module is gone."""
    done = _run(LOGS_ITS_OUTPUT.format(base=base), cwd=tmp_path)

    assert (done.stdout, done.stderr, done.returncode) == ("shown\n", "", 7)
    assert (tmp_path / "log.txt").read_text() == "shown\n"


@pytest.fixture
def held() -> Iterator[HeldInterrupts]:
    """In a main thread in which Python's own handler is installed."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts = HeldInterrupts()
    interrupts.hold()
    yield interrupts
    signal.signal(signal.SIGINT, before)


def test_nothing_of_ours_is_interrupted_once_the_script_is_over(held: HeldInterrupts) -> None:
    signal.raise_signal(signal.SIGINT)
    held.release()

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_scripts_hears_of_it_afterwards(held: HeldInterrupts) -> None:
    held.release()
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append("Ctrl-C"))
    held.hold()
    signal.raise_signal(signal.SIGINT)
    assert heard == []
    held.release()

    assert heard == ["Ctrl-C"]


INTERRUPTED_AT_EACH_STEP = """
import signal, sys
from pipediag.capture.process import HeldInterrupts
from pipediag.child import ending as module
from pipediag.child.ending import Ending
class Told:
    def tell(self, message):
        signal.raise_signal(signal.SIGINT)
        print(type(message).__name__)
class Recorder:
    def script_ended(self, *end):
        signal.raise_signal(signal.SIGINT)
        print("saved")
    def let_go(self):
        signal.raise_signal(signal.SIGINT)
        return False
remove_own_frames = module.remove_own_frames
def interrupted(error):
    signal.raise_signal(signal.SIGINT)
    remove_own_frames(error)
module.remove_own_frames = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
ending = Ending(Told(), HeldInterrupts())
ending.record_with(Recorder())
try:
    raise ValueError("the script's")
except ValueError as error:
    ending.begins()
    ending.failed(error)
    raise
"""


def test_ctrl_c_at_any_step_of_the_end_leaves_only_the_scripts_own_error() -> None:
    done = _run(INTERRUPTED_AT_EACH_STEP)

    assert (done.stdout, done.returncode) == ("saved\nEnded\nClosing\n", 1)
    assert done.stderr.splitlines()[-1] == "ValueError: the script's"
    assert done.stderr.count("Traceback") == 1


def _raise_through(file: str, inner: str) -> BaseException:
    """An exception whose frames lie in `file`, then here, then in `file` again."""
    namespace: dict[str, object] = {}
    exec(compile("def call(f):\n    f()\n", file, "exec"), namespace)
    call = namespace["call"]
    assert callable(call)

    def fail() -> None:
        call(lambda: {}[inner])

    try:
        call(fail)
    except KeyError as error:
        return error
    raise AssertionError("it did not fail")


def _files(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


@pytest.fixture
def own_file(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(ending, "PACKAGE", "/opt/pipediag/")
    return "/opt/pipediag/child/some.py"


def test_own_frames_go_wherever_they_are(own_file: str) -> None:
    error = _raise_through(own_file, "x")
    assert _files(error).count(own_file) == 2

    remove_own_frames(error)

    assert _files(error) == [__file__, __file__, __file__]


def test_chains_and_groups_are_cleaned(own_file: str) -> None:
    cause, context, member = (_raise_through(own_file, key) for key in "abc")
    error = BaseExceptionGroup("group", [member])
    error.__cause__, member.__context__, context.__context__ = cause, context, error

    remove_own_frames(error)

    assert own_file not in _files(cause) + _files(context) + _files(member)


def test_contains_looks_through_chains_and_groups() -> None:
    error = ValueError()
    error.__context__ = BaseExceptionGroup("group", [KeyboardInterrupt()])

    assert contains(error, KeyboardInterrupt)
    assert not contains(error, OSError)


def test_logging_is_not_imported_before_the_script() -> None:
    """Its exit handler must run before ours, which is registered when the script begins."""
    modules = "pipediag.child.start, pipediag.capture.capture, pipediag.capture.replay.replacing"
    done = _run(f"import sys, {modules}\nprint('logging' in sys.modules)")
    assert done.stdout == "False\n"
