from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pipediag.runner.progress import LooksFurther, NoLoopYet, NotWarmYet
from pipediag.runner.timeouts import (
    AWAITED_AFTER_S,
    BUSY_AFTER_S,
    EXIT_GRACE_S,
    IDLE_S,
    LONGEST_S,
    Awaited,
    Lookout,
    Patience,
    activity_of,
)
from pipediag.session.messages import (
    FromChild,
    LoopFound,
    LoopMeasured,
    Started,
    Stopping,
    TrialsAwaited,
    WindowBegun,
)


class Stage:
    """A clock, and a process that writes or does not."""

    def __init__(self) -> None:
        self.now = 100.0
        self.written = 0
        self.patience = Patience(lambda: self.written, lambda: self.now)

    def passes(self, seconds: float, *, writing: bool = False) -> bool:
        """Look every second; returns whether patience was over by then."""
        until = self.now + seconds
        while self.now < until:
            self.now += 1
            self.written += writing
            if self.patience.is_over():
                return True
        return False


def test_a_script_that_runs_is_waited_for() -> None:
    assert not Stage().passes(10_000)


def test_one_that_writes_while_it_is_stopped_is_waited_for() -> None:
    stage = Stage()
    stage.patience.stopping()
    assert not stage.passes(LONGEST_S - 10, writing=True)
    assert stage.passes(20, writing=True)


def test_one_that_hangs_while_it_is_stopped_is_not() -> None:
    stage = Stage()
    stage.patience.stopping()
    assert not stage.passes(IDLE_S - 2)
    assert not stage.passes(5, writing=True)
    assert not stage.passes(IDLE_S - 2)
    assert stage.passes(5)


def test_being_told_of_the_stop_twice_begins_no_new_wait() -> None:
    stage = Stage()
    stage.patience.stopping()
    stage.passes(IDLE_S - 2)
    stage.patience.stopping()
    assert stage.passes(5)


def test_interpreter_exit_has_a_limit_whatever_it_does() -> None:
    stage = Stage()
    stage.patience.stopping()
    stage.passes(50, writing=True)
    stage.patience.leaving()
    assert not stage.passes(EXIT_GRACE_S - 1, writing=True)
    assert stage.passes(3, writing=True)


def test_a_script_that_goes_on_after_all_is_waited_for() -> None:
    stage = Stage()
    stage.patience.stopping()
    stage.patience.running()
    assert not stage.passes(10_000)


def test_it_is_told_once_and_not_at_once() -> None:
    stage = Stage()
    stage.patience.stopping()
    assert not stage.patience.has_to_be_told()
    stage.passes(BUSY_AFTER_S + 1, writing=True)
    assert stage.patience.has_to_be_told()
    assert not stage.patience.has_to_be_told()


def test_what_a_process_and_its_children_write_is_seen(tmp_path: Path) -> None:
    writes = "import sys; open(sys.argv[1], 'w').write('x'); print('wrote', flush=True); input()"
    shell = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {writes!r}, *sys.argv[1:]])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", shell, str(tmp_path / "file")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    before = activity_of(process.pid)
    process.stdout.readline()
    after = activity_of(process.pid)
    process.communicate(b"\n")
    assert len(after) == 2
    assert after != before
    assert activity_of(process.pid) == {process.pid: ()}
    assert activity_of(os.getpid())[os.getpid()]


class Awaiting:
    """A clock, and messages of a child."""

    def __init__(self, *messages: FromChild) -> None:
        self.now = 100.0
        self.lookout = Lookout(lambda: self.now)
        for message in messages:
            self.lookout.heard(message)

    def after(self, seconds: float) -> Awaited | None:
        self.now += seconds
        return self.lookout.to_be_told()


def test_what_is_waited_for_is_told_once() -> None:
    stage = Awaiting(Started())
    assert stage.after(AWAITED_AFTER_S - 1) is None
    assert stage.after(2) == NoLoopYet()
    assert stage.after(1000) is None


def test_a_loop_whose_steps_do_not_settle_is_told_of() -> None:
    """Also where it was told before that none had come."""
    stage = Awaiting(Started())
    assert stage.after(AWAITED_AFTER_S + 1) == NoLoopYet()
    stage.lookout.heard(LoopFound(3))
    assert stage.after(AWAITED_AFTER_S - 1) is None
    assert stage.after(2) == NotWarmYet(3)
    assert stage.after(1000) is None


def test_while_a_loop_is_measured_nothing_is_told() -> None:
    assert Awaiting(Started(), LoopFound(3), WindowBegun("baseline")).after(1000) is None


def test_a_script_that_goes_on_after_its_loop_is_told_of() -> None:
    stage = Awaiting(Started(), LoopFound(3), WindowBegun("baseline"), LoopMeasured(3))
    assert stage.after(AWAITED_AFTER_S + 1) == LooksFurther(3)
    assert stage.after(1000) is None


def test_trials_are_told_of_by_themselves() -> None:
    waiting = TrialsAwaited("loop1", alone=False, more_to_come=True, since_ns=0)
    stage = Awaiting(Started(), LoopFound(3), LoopMeasured(3), waiting)
    assert stage.after(1000) is None
    stage.lookout.trials_over()
    assert stage.after(AWAITED_AFTER_S - 1) is None
    assert stage.after(2) == LooksFurther(3)


def test_a_script_that_is_stopped_is_waited_for_by_somebody_else() -> None:
    assert Awaiting(Started(), LoopMeasured(3), Stopping()).after(1000) is None


def test_before_the_script_runs_nothing_is_told() -> None:
    assert Awaiting().after(1000) is None
