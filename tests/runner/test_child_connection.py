"""The parent, when a child answers, dies, hangs or leaves while it is asked.

The scripts speak for themselves on the pipes that the child was given, so that no TensorFlow runs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from pipediag.runner.child_connection import (
    IDLE_S,
    LONGEST_S,
    Ask,
    MessageReader,
    Patience,
    activity_of,
)
from pipediag.runner.child_process import supervise
from pipediag.session.messages import (
    Answer,
    BlockRun,
    ChildResult,
    Closing,
    LoopFound,
    RunBlock,
    RunSettings,
    Started,
    TrialsAwaited,
    encode,
)
from pipediag.trials import ExecutorLostError

SPEAKS = """
import json
import os
import pathlib

pipes = json.loads((pathlib.Path(__file__).parent / "settings.json").read_text())

def tell(message, **fields):
    line = json.dumps({"is": message, **fields}) + "\\n"
    os.write(pipes["progress_fd"], line.encode())

def hear():
    return json.loads(os.read(pipes["command_fd"], 4096).decode().splitlines()[0])

tell("TrialsAwaited", loop_id="loop1", alone=False, more_to_come=False, since_ns=0)
"""


class Conversation:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.answers: list[Answer] = []
        self.gone: list[str] = []

    def hold(self, text: str, limit_s: float = 30, timeout_s: float = 60) -> ChildResult:
        """Run a script that has begun with `SPEAKS`, and put one command to it."""
        script = self._directory / "script.py"
        script.write_text(SPEAKS + dedent(text))
        settings = RunSettings(str(script), (), False, str(self._directory))

        def talk(waiting: TrialsAwaited, ask: Ask) -> None:
            assert waiting.loop_id == "loop1"
            try:
                self.answers.append(ask(RunBlock("base", 0.4), limit_s))
            except ExecutorLostError as gone:
                self.gone.append(str(gone))
                (self._directory / "gone").touch()

        return supervise(
            settings,
            timeout_s=timeout_s,
            on_started=lambda pid: None,
            on_progress=lambda event: None,
            on_trials=talk,
        )


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    return Conversation(tmp_path)


def test_an_answer_comes_back_and_then_the_end_is_reported(conversation: Conversation) -> None:
    result = conversation.hold(
        """
        asked = hear()
        tell("BlockRun", variant=asked["variant"], batches=3, examples=96, elapsed_ns=7)
        assert hear() == {"is": "EndTrials"}
        """
    )

    assert conversation.answers == [BlockRun("base", 3, 96, 7)]
    assert (result.outcome, result.script_status) == ("finished", 0)


def test_a_child_that_is_killed_is_gone(conversation: Conversation) -> None:
    result = conversation.hold("hear(); os.kill(os.getpid(), 9)")

    assert "SIGKILL" in conversation.gone[0]
    assert (result.outcome, result.script_status) == ("stopped", None)
    assert str(result.detail).startswith("A trial ended it: It was killed (SIGKILL)")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_script_that_is_asked_to_end_in_its_trials_was_not_ended_by_one(
    conversation: Conversation, number: int
) -> None:
    # Under `nohup` SIGHUP is passed on as one that is ignored.
    default = f"import signal; signal.signal({number:d}, signal.SIG_DFL)"
    result = conversation.hold(f"{default}; hear(); os.kill(os.getpid(), {number:d})")

    name = signal.Signals(number).name
    assert name in conversation.gone[0]
    assert (result.outcome, result.script_status) == ("killed", -number)
    assert result.detail == f"It was ended by {name}."
    assert result.held_ns is not None


def test_trials_that_the_child_ended_do_not_end_the_next_ones(conversation: Conversation) -> None:
    conversation.hold(
        """
        hear()
        tell("TrialsOver", reason="another thread trains")
        while not (pathlib.Path(__file__).parent / "gone").exists():
            pass
        tell("TrialsAwaited", loop_id="loop1", alone=False, more_to_come=True, since_ns=0)
        asked = hear()
        name = asked.get("variant", asked["is"])
        tell("BlockRun", variant=name, batches=3, examples=96, elapsed_ns=7)
        """
    )

    assert conversation.gone == ["they were ended: another thread trains."]
    assert conversation.answers == [BlockRun("base", 3, 96, 7)]


def test_a_child_that_hangs_is_ended(conversation: Conversation) -> None:
    result = conversation.hold("hear(); import time; time.sleep(600)", limit_s=1)

    assert conversation.gone == ["it did not respond within 1 s."]
    assert (result.outcome, result.script_status) == ("stopped", None)
    assert result.detail == "A trial ended it: it did not respond within 1 s."
    assert result.held_ns is not None


def test_a_script_that_times_out_while_it_is_held_was_held_since_then(
    conversation: Conversation,
) -> None:
    late = conversation.hold("hear(); import time; time.sleep(600)", timeout_s=6)
    assert late.outcome == "timed-out"
    assert late.started_ns < late.held_ns < late.ended_ns


def test_a_fault_while_asking_leaves_no_child_behind(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SPEAKS + "hear()")

    def talk(waiting: TrialsAwaited, ask: Ask) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        supervise(
            RunSettings(str(script), (), False, str(tmp_path)),
            timeout_s=60,
            on_started=lambda pid: None,
            on_progress=lambda event: None,
            on_trials=talk,
        )


def test_messages_are_read_whole_and_in_order_without_waiting() -> None:
    reading, writing = os.pipe()
    reader = MessageReader(reading)
    second = encode(LoopFound(12))

    os.write(writing, encode(Started()) + second[:8])
    first = list(reader.read())
    os.write(writing, second[8:] + b'no json\n[1]\n{"is": "News"}\n' + encode(Closing()))
    rest = list(reader.read())
    os.close(writing)

    assert [first, rest, list(reader.read())] == [[Started()], [LoopFound(12), Closing()], []]
    os.close(reading)


@pytest.mark.parametrize(("writes", "longest_s"), [(True, LONGEST_S), (False, IDLE_S)])
def test_one_that_writes_while_it_is_stopped_is_waited_for(writes: bool, longest_s: float) -> None:
    now = began = 100.0
    limit_s = longest_s if writes else LONGEST_S
    patience = Patience(lambda: writes and now, lambda: now, limit_s)
    patience.stopping()
    while not patience.is_over():
        now += 1
    assert now == began + longest_s + 1


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
    before = activity_of(process.pid)
    process.stdout.readline()
    after = activity_of(process.pid)
    process.communicate(b"\n")
    assert len(after) == 2
    assert after != before
    assert activity_of(process.pid) == {}
    assert activity_of(os.getpid())[os.getpid()]
