"""Steps between two decisions of a diagnosis: only the time at which they began is noted.

What a hook asks at each step it finds cold in the processor's caches, and pays a microsecond for.
Of steps of 2 ms that was three percent (benchmarks/hook_cost.py). So where steps are that short and
the next ones decide nothing, they are noted here, and reported together when one comes that does.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

from pipediag.capture.loops.loop import Consumer

Tell = Callable[[Consumer, int, int | None], None]
"""Takes the iterator, when the step began, and how long its batch was waited for in Python."""


class Streak:
    """Steps of one thread, on one of its iterators at a time."""

    __slots__ = (
        "_consumer",
        "_function",
        "_functions",
        "_left",
        "_noted",
        "_tell",
        "_thread",
        "_traced",
        "called_ns",
    )

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._consumer: Consumer | None = None
        self._left = 0
        self._thread = 0
        self._noted: list[tuple[int, int | None]] = []
        self._function: weakref.ref[Any] | None = None
        self._functions: list[Any] = []
        self._traced = 0
        self.called_ns = 0
        """When the function was called last."""

    def begins(self, consumer: Consumer, steps: int) -> None:
        """Note the next steps alone, as they decide nothing; another thread tells its own first."""
        if self._noted and get_ident() != self._thread:
            return
        if consumer is not self._consumer:
            self._function, self._noted = None, []
        self._consumer, self._left, self._thread = consumer, steps, get_ident()

    def follows(self, function: Any, traced: int, functions: list[Any]) -> None:
        """Expect this function in the next steps, traced so often by now, among `functions`."""
        if self._left > 0 and get_ident() == self._thread:
            self._function = weakref.ref(function)
            self._functions, self._traced = functions, traced

    def handed(self, consumer: Consumer, asked_ns: int, handed_ns: int) -> bool:
        """Note a batch that Python got; return False if it has to be reported at once."""
        if self._left <= 0 or consumer is not self._consumer or get_ident() != self._thread:
            return False
        self._left -= 1
        self._noted.append((handed_ns, handed_ns - asked_ns))
        return True

    def called(self, function: Any, args: tuple[Any, ...]) -> bool:
        """Note a call of the step's function; return False if it has to be reported at once.

        Then `returned` is to be called, too.
        """
        if self._left <= 0 or self._function is None or self._function() is not function:
            return False
        if get_ident() != self._thread or self._functions:
            return False
        consumer = self._consumer
        assert consumer is not None
        self.called_ns = time.monotonic_ns()
        if consumer.hand_over == "call":
            if not args or consumer.iterator() is not args[0]:
                return False
            self._left -= 1
            self._noted.append((self.called_ns, None))
        self._functions.append(function)
        return True

    def returned(self, function: Any) -> bool:
        """Note that the call is over; return True if the function was traced anew in it."""
        self._functions.pop()
        return bool(function.experimental_get_tracing_count() != self._traced)

    def settle(self) -> None:
        """Report what was noted, before anything else is reported on that thread."""
        if self._consumer is None or get_ident() != self._thread:
            return
        noted, self._noted, self._left = self._noted, [], 0
        for began_ns, wait_ns in noted:
            self._tell(self._consumer, began_ns, wait_ns)

    def let_go(self) -> None:
        """Forget it all."""
        self._noted, self._left = [], 0
        self._consumer = self._function = None
