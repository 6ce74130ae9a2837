from __future__ import annotations

from pipediag.capture.measuring.stacks import CallbackClock


def test_what_callbacks_take_is_added_up_by_class_while_it_runs() -> None:
    clock = CallbackClock()
    clock.add("Early", 9)
    clock.start()
    clock.add("Log", 3)
    clock.add("Log", 4)
    clock.add("Draw", 1)

    assert clock.running
    assert clock.stop() == {"Log": 7, "Draw": 1}
    assert not clock.running
    clock.add("Late", 9)
    clock.start()
    assert clock.stop() == {}
