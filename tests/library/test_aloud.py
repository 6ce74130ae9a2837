from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from pipediag.library.beside import AloudTeller
from pipediag.session.messages import (
    FROM_CHILD,
    FromChild,
    LoopFound,
    LoopMeasured,
    Started,
    TrialsAwaited,
    WindowBegun,
    decode,
)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    told, telling = os.pipe()
    yield told, telling
    os.close(told)
    os.close(telling)


def test_a_notebook_hears_what_the_companion_hears(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    told, telling = pipe
    teller = AloudTeller(telling, 20.0)
    messages: list[FromChild] = [
        Started(),
        LoopFound(3),
        WindowBegun("baseline"),
        WindowBegun("profile"),
        LoopMeasured(3),
        TrialsAwaited("loop1", alone=False, more_to_come=False, since_ns=1),
    ]
    for message in messages:
        teller.tell(message)
    lines = os.read(told, 1 << 16).splitlines()
    assert [decode(line, FROM_CHILD) for line in lines] == messages
    assert capsys.readouterr().err.splitlines() == [
        "pipediag: measuring; the result comes when the cell is done.",
        "pipediag: warming up the loop in line 3.",
        "pipediag: timing steps, without a profiler.",
        "pipediag: profiling a few steps.",
        "pipediag: the loop in line 3 is measured.",
        "pipediag: trying changes, for up to 20 s.",
    ]
