from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from pipediag.capture.link import LONGEST_ERROR
from pipediag.errors import PipediagError
from pipediag.interrupts import INTERRUPTS
from pipediag.runner import child_connection, child_process
from pipediag.runner.child_process import end_process_tree, supervise
from pipediag.runner.progress import NO_LOOP_YET, Shown
from pipediag.session.messages import ChildResult, RunSettings

Supervise = Callable[..., ChildResult]


@pytest.fixture
def run_script(tmp_path: Path) -> Supervise:
    def run(
        text: str,
        *,
        timeout_s: float | None = 60,
        events: list[Shown] | None = None,
        pids: list[int] | None = None,
        module: bool = False,
        run_to_end: bool = False,
    ) -> ChildResult:
        script = tmp_path / "script.py"
        script.write_text(dedent(text))
        settings = RunSettings(
            script=text if module else str(script),
            args=(),
            module=module,
            capture_directory=str(tmp_path),
            run_to_end=run_to_end,
        )
        return supervise(
            settings,
            timeout_s=timeout_s,
            on_started=(pids if pids is not None else []).append,
            on_progress=(events if events is not None else []).append,
        )

    return run


@pytest.mark.parametrize(
    ("text", "outcome", "status"),
    [
        ("print(1)", "finished", 0),
        ("raise SystemExit", "exited", 0),
        ("raise SystemExit(4)", "exited", 4),
        ("raise SystemExit('text')", "exited", 1),
        ("import os; os._exit(6)", "exited", 6),
        ("1 / 0", "raised", 1),
        ("raise KeyboardInterrupt", "interrupted", -signal.SIGINT),
        ("import os; os.kill(os.getpid(), 15)", "killed", -signal.SIGTERM),
        ("import os; os.kill(os.getpid(), 9)", "killed", -signal.SIGKILL),
        ("import os; os.abort()", "killed", -signal.SIGABRT),
    ],
)
def test_tells_how_the_script_ended(
    text: str, outcome: str, status: int, run_script: Supervise
) -> None:
    result = run_script(text)

    assert (result.outcome, result.script_status) == (outcome, status)
    assert result.started_ns < result.ended_ns


def test_an_exception_that_says_more_than_a_pipe_holds_is_named(run_script: Supervise) -> None:
    result = run_script("raise ValueError('x' * 200_000)")

    assert result.outcome == "raised"
    assert str(result.detail) == "ValueError: " + "x" * (LONGEST_ERROR - len("ValueError: "))


STOPPED = "from pipediag.capture import StopScript\n"


@pytest.mark.parametrize(
    "text",
    [
        "raise StopScript",
        "try:\n    raise StopScript\nfinally:\n    print('cleaned up')",
        "try:\n    raise StopScript\n"
        "except BaseException:\n    raise ValueError('failed clean-up')",
        "raise BaseExceptionGroup('tasks', [StopScript(), ValueError('a sibling')])",
        "import threading\nt = threading.Thread(target=lambda: (_ for _ in ()).throw(StopScript))\n"
        "t.start(); t.join(); raise SystemExit('not reached')",
    ],
)
def test_a_stop_is_no_failure(
    text: str, run_script: Supervise, capfd: pytest.CaptureFixture[str]
) -> None:
    result = run_script(STOPPED + text)

    assert (result.outcome, result.script_status) == ("stopped", None)
    assert capfd.readouterr().err == ""


def test_what_is_long_waited_for_is_announced_once(
    run_script: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "AWAITED_AFTER_S", 0.2)
    events: list[Shown] = []
    run_script("import time; time.sleep(1)", events=events)
    assert events.count(NO_LOOP_YET) == 1


def test_timeout_ends_the_script(run_script: Supervise) -> None:
    result = run_script("import time; time.sleep(600)", timeout_s=1)

    assert (result.outcome, result.script_status) == ("timed-out", None)
    assert "--timeout" in (result.detail or "")


STARTS_ANOTHER = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, {handler})
sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(sleeper.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("handler", "status"),
    [("lambda *_: sys.exit(5)", 5), ("signal.SIG_IGN", -signal.SIGKILL)],
    ids=["leaves on SIGTERM", "ignores SIGTERM"],
)
def test_a_process_is_ended_with_all_it_started(handler: str, status: int) -> None:
    command = [sys.executable, "-c", STARTS_ANOTHER.format(handler=handler)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        started = int(process.stdout.readline())

        end_process_tree(process, grace_s=30 if status > 0 else 0.1)

        assert process.wait(30) == status
    assert _dies(started)


HANGS_IN_EXIT = """
    import atexit, sys, time
    atexit.register(print, "exit handler", flush=True)
    class Hang:
        def __del__(self, sleep=time.sleep):
            sleep(600)
    hang = Hang()
"""


@pytest.mark.parametrize(("ending", "status"), [("", 0), ("sys.exit(3)", 3), ("1 / 0", 1)])
def test_a_hang_in_interpreter_exit_keeps_the_status(
    ending: str,
    status: int,
    run_script: Supervise,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(child_connection, "EXIT_GRACE_S", 0.3)
    monkeypatch.setattr(child_connection, "IDLE_S", 0.3)

    result = run_script(dedent(HANGS_IN_EXIT) + ending)

    assert (result.outcome, result.script_status) == ("hung-in-exit", status)
    assert capfd.readouterr().out == "exit handler\n"


def test_a_destructor_that_waits_is_not_cut_off_in_a_script_that_runs_to_its_end(
    run_script: Supervise, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(child_connection, "IDLE_S", 0.1)
    monkeypatch.setattr(child_connection, "EXIT_GRACE_S", 0.1)
    text = """
        import os, time
        class Uploads:
            def __del__(self, sleep=time.sleep, write=os.write):
                sleep(1)
                write(1, b"uploaded")
        uploads = Uploads()
    """
    result = run_script(text, run_to_end=True)

    assert (result.outcome, result.script_status, result.detail) == ("finished", 0, None)
    assert capfd.readouterr().out == "uploaded"


def test_a_script_that_swallows_the_stop_is_ended(
    run_script: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_connection, "EXIT_GRACE_S", 0.3)
    monkeypatch.setattr(child_connection, "IDLE_S", 0.3)
    text = """
        import gc, time
        from pipediag.capture.link import Teller
        from pipediag.session.messages import Stopping
        (teller,) = (thing for thing in gc.get_objects() if type(thing) is Teller)
        teller.tell(Stopping())
        time.sleep(600)
    """

    result = run_script(text)

    assert (result.outcome, result.script_status) == ("stopped", None)


def test_slow_exit_handlers_and_threads_are_waited_for(
    run_script: Supervise, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(child_connection, "EXIT_GRACE_S", 1.0)
    monkeypatch.setattr(child_connection, "IDLE_S", 1.0)
    text = """
        import atexit, threading, time
        atexit.register(lambda: (time.sleep(1.5), print("handler")))
        threading.Thread(target=lambda: (time.sleep(1.5), print("thread"))).start()
    """

    assert run_script(text).outcome == "finished"
    assert capfd.readouterr().out == "thread\nhandler\n"


@pytest.mark.parametrize("name", ["no_such_module", "json.no_such", "xml"])
def test_a_module_that_cannot_be_run_is_refused(name: str, run_script: Supervise) -> None:
    with pytest.raises(PipediagError, match=f"No module named.*{name}"):
        run_script(name, module=True)


def test_an_interpreter_that_does_not_start_is_told_of(
    run_script: Supervise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(child_process, "CHILD", tmp_path / "missing.py")

    with pytest.raises(PipediagError, match="before the script was run"):
        run_script("print(1)")


def test_ctrl_c_while_the_child_starts_interrupts_the_script_at_its_first_line(
    run_script: Supervise, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(INTERRUPTS, "_count", 1)
    result = run_script("print('never')")

    assert (result.outcome, result.script_status) == ("interrupted", -signal.SIGINT)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err == "KeyboardInterrupt\n"


def _dies(pid: int) -> bool:
    try:
        psutil.Process(pid).wait(10)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return not _alive(pid)
    return True


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
