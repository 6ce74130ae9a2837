"""Whether a framework's code runs for a line of the script."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from pipediag.capture.line_sampler import in_framework

PACKAGES = "/env/lib/python3.11/site-packages"


def calling(file: str, inner: Callable[[], FrameType]) -> Callable[[], FrameType]:
    """A function of that file that calls another one."""
    names: dict[str, Callable[[], FrameType]] = {"inner": inner}
    exec(compile("def call():\n    return inner()\n", file, "exec"), names)
    return names["call"]


def stack(*files: str) -> FrameType:
    """The innermost frame of a stack of these files, the outermost first."""
    function: Callable[[], FrameType] = lambda: sys._getframe(1)  # noqa: E731
    for file in reversed(files):
        function = calling(file, function)
    return function()


@pytest.mark.parametrize(
    ("files", "framework"),
    [
        (["/home/someone/train.py", f"{PACKAGES}/keras/src/models/model.py"], True),
        (
            [
                "/home/someone/train.py",
                f"{PACKAGES}/keras/src/layers/dense.py",
                f"{PACKAGES}/numpy/random.py",
            ],
            True,
        ),
        (["/home/someone/train.py"], False),
        (["/home/someone/train.py", f"{PACKAGES}/numpy/lib/npyio.py"], False),
        # A function of the script's own that a framework calls is the script's.
        ([f"{PACKAGES}/keras/src/trainer.py", "/home/someone/train.py"], False),
    ],
)
def test_it_is_the_frameworks_where_its_code_lies_beneath_the_script_s(
    files: list[str], framework: bool
) -> None:
    assert in_framework(stack(*files)) is framework


def test_no_stack_is_nobodys() -> None:
    assert in_framework(None) is False
