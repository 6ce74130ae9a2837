"""What each thread of the script is consuming."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.capture.loops.loop import Consumer
from pipediag.capture.threads import EachThread
from pipediag.capture.watching.joined_iterators import JoinedIterators
from pipediag.capture.watching.nested_calls import NestedCalls


@dataclass(eq=False)
class Turn:
    """Of one thread."""

    last: Consumer | None = None
    """The iterator that handed over a batch last."""
    seam: bool = False
    """Whether the step that it began has been interrupted."""
    epoch_ns: int | None = None
    """When Keras turned to the batches of an epoch last."""
    nested: NestedCalls = field(default_factory=NestedCalls)
    joined: JoinedIterators = field(default_factory=JoinedIterators)


Turns = EachThread[Turn]
