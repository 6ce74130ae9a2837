from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from pipediag.capture import link
from pipediag.capture.link import CommandPipe, NoCommandError, Teller
from pipediag.runner.child_connection import MessageReader
from pipediag.session.messages import (
    Closing,
    Ended,
    FromChild,
    LoopFound,
    Prepared,
    RunBlock,
    encode,
)

LONG = "x" * 200_000
"""More than a pipe holds."""


class Pipe:
    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.reader = MessageReader(self.reading)
        self.teller = Teller(self.writing)

    def told(self) -> list[FromChild]:
        return list(self.reader.read())

    def told_while_telling(self, message: FromChild) -> list[FromChild]:
        """What arrives at a parent that reads all the time."""
        telling = threading.Thread(target=self.teller.tell, args=(message,))
        telling.start()
        told = []
        while telling.is_alive():
            told += self.told()
        return told + self.told()

    def fill(self) -> None:
        """Leave room for less than any message."""
        for size in (1 << 16, 1):
            try:
                while True:
                    os.write(self.writing, b" " * size)
            except BlockingIOError:
                pass


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.reading)
    os.close(made.writing)


TELLS_NOBODY = """
import os
import signal

from pipediag.capture.link import Teller
from pipediag.session.messages import Ended

signal.signal(signal.SIGPIPE, signal.{action})
reading, writing = os.pipe()
os.close(reading)
Teller(writing).tell(Ended("finished", 0))
assert signal.getsignal(signal.SIGPIPE) is signal.{action}
assert not signal.sigpending()
assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
print("goes on", flush=True)
reading, own = os.pipe()
os.close(reading)
os.write(own, b"to somebody who has gone")
"""


def test_a_program_that_dies_of_broken_pipes_does_not_die_of_ours() -> None:
    text = TELLS_NOBODY.format(action="SIG_DFL")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, check=False, text=True)
    assert (done.stdout, done.returncode) == ("goes on\n", -signal.SIGPIPE), done.stderr


def test_what_only_shows_the_progress_does_not_wait_for_room(pipe: Pipe) -> None:
    pipe.fill()
    pipe.teller.tell(LoopFound(12))
    assert pipe.told() == []


def test_an_answer_waits_for_room(pipe: Pipe) -> None:
    pipe.fill()
    assert pipe.told_while_telling(Prepared("base")) == [Prepared("base")]


def test_a_line_that_was_cut_is_given_up_and_does_not_spoil_the_next(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "ROOM_LIMIT_S", 0.05)
    pipe.teller.tell(Ended("raised", 1, LONG))
    assert pipe.told() == []
    pipe.teller.tell(Closing())
    assert pipe.told() == [Closing()]


def test_commands_come_one_by_one_until_the_end_of_the_pipe() -> None:
    reading, writing = os.pipe()
    asked = [RunBlock("base", 0.4), RunBlock("wide", 0.3, alone=True)]
    os.write(writing, b"".join(map(encode, asked)))
    os.close(writing)
    commands = CommandPipe(reading)
    assert [commands.next(), commands.next(), commands.next()] == [*asked, None]
    os.close(reading)


@pytest.mark.parametrize("line", [encode(RunBlock("wide", 0.3))[:-1], b'{"is": "Sing"}\n'])
def test_what_is_no_command_is_not_waited_for_for_ever(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "ASKING_LIMIT_S", 0.05)
    reading, writing = os.pipe()
    os.write(writing, line)
    with pytest.raises(NoCommandError):
        CommandPipe(reading).next()
    os.close(reading)
    os.close(writing)
