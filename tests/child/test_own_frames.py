from __future__ import annotations

import traceback

import pytest

from pipediag.child import ending
from pipediag.child.ending import contains, remove_own_frames


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
