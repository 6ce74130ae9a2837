"""What the parent makes of a child that answers, dies, hangs or leaves while it is asked.

The scripts speak for themselves on the pipes that the child was given, so that no TensorFlow runs.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from pipediag.runner.asking import Ask, ChildGone
from pipediag.runner.progress import Event
from pipediag.runner.supervisor import ChildResult, supervise
from pipediag.session.settings import RunSettings

SPEAKS = """
import json
import os
import pathlib

pipes = json.loads((pathlib.Path(__file__).parent / "settings.json").read_text())

def tell(**event):
    os.write(pipes["progress_fd"], (json.dumps(event) + "\\n").encode())

def hear():
    return json.loads(os.read(pipes["command_fd"], 4096).decode().splitlines()[0])

tell(event="trials", loop="loop1", alone=False, goes_on=False)
"""


class Conversation:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.answers: list[Event] = []
        self.gone: list[str] = []

    def hold(self, text: str, limit_s: float = 30) -> ChildResult:
        """Run a script that has begun with `SPEAKS`, and put one command to it."""
        script = self._directory / "script.py"
        script.write_text(SPEAKS + dedent(text))
        settings = RunSettings(str(script), (), False, str(self._directory))

        def talk(waiting: Event, ask: Ask) -> None:
            assert waiting["loop"] == "loop1"
            try:
                self.answers.append(ask({"do": "block", "arm": "base"}, limit_s))
            except ChildGone as gone:
                self.gone.append(str(gone))

        return supervise(
            settings,
            timeout_s=60,
            on_started=lambda pid: None,
            on_progress=lambda event: None,
            on_trials=talk,
        )


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    return Conversation(tmp_path)


def test_an_answer_comes_back_and_then_the_end_is_told(conversation: Conversation) -> None:
    result = conversation.hold(
        """
        asked = hear()
        tell(event="block", arm=asked["arm"], batches=3)
        assert hear() == {"do": "end"}
        """
    )

    assert conversation.answers == [{"event": "block", "arm": "base", "batches": 3}]
    assert (result.outcome, result.script_status) == ("finished", 0)


def test_a_child_that_is_killed_is_gone(conversation: Conversation) -> None:
    result = conversation.hold("hear(); os.kill(os.getpid(), 9)")

    assert "SIGKILL" in conversation.gone[0]
    assert (result.outcome, result.script_status) == ("stopped", None)
    assert str(result.detail).startswith("A trial ended it: It was killed (SIGKILL)")


def test_a_child_that_exits_is_gone(conversation: Conversation) -> None:
    conversation.hold("hear(); os._exit(7)")

    assert conversation.gone == ["the script ended with status 7."]


def test_a_loop_that_ends_is_gone(conversation: Conversation) -> None:
    result = conversation.hold(
        """
        hear()
        tell(event="trials-over", reason="the script finished")
        """
    )

    assert conversation.gone == ["the training loop ended: the script finished."]
    assert result.outcome == "finished"


def test_a_child_that_hangs_is_ended(conversation: Conversation) -> None:
    result = conversation.hold("hear(); import time; time.sleep(600)", limit_s=1)

    assert conversation.gone == ["it did not come back within 1 s."]
    assert (result.outcome, result.script_status) == ("stopped", None)
    assert result.detail == "A trial ended it: it did not come back within 1 s."


def test_a_fault_while_asking_leaves_no_child_behind(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SPEAKS + "hear()")

    def talk(waiting: Event, ask: Ask) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        supervise(
            RunSettings(str(script), (), False, str(tmp_path)),
            timeout_s=60,
            on_started=lambda pid: None,
            on_progress=lambda event: None,
            on_trials=talk,
        )
