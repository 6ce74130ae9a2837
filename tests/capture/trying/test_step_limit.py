from __future__ import annotations

import threading

import pytest

from pipediag.capture.trying.step_limit import DidNotComeBackError, within_limit


def test_work_gives_its_result_or_its_error() -> None:
    assert within_limit(lambda: 3) == 3
    assert within_limit(lambda: None) is None
    with pytest.raises(ZeroDivisionError):
        within_limit(lambda: 1 // 0)


def test_nobody_waits_for_work_that_hangs() -> None:
    ends = threading.Event()
    with pytest.raises(DidNotComeBackError, match=r"within 0\.05 s"):
        within_limit(ends.wait, seconds=0.05)
    ends.set()
