"""Reading a running frame's variables keeps none of them."""

from __future__ import annotations

import inspect
import weakref
from types import FrameType

from pipediag.capture.callsites import locals_of


class Iterator:
    """Stands for what a frame has in a variable."""


def _frame() -> FrameType:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back


def test_what_a_variable_held_goes_when_the_frame_lets_go_of_it() -> None:
    iterator = Iterator()
    gone = weakref.ref(iterator)

    assert locals_of(_frame())["iterator"] is iterator
    iterator = Iterator()

    assert gone() is None
    assert locals_of(_frame())["iterator"] is iterator


def test_variables_of_a_module_are_left_alone() -> None:
    module: dict[str, object] = {"_frame": _frame, "locals_of": locals_of}
    exec("kept = 1\nread = locals_of(_frame())", module)

    assert module["kept"] == 1
    assert isinstance(module["read"], dict)
    assert module["read"]["kept"] == 1
