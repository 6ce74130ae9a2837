"""A stock of ready batches, laid up while functions compiled, hides how fast a pipeline really is.

Steps that live on it wait for nothing until it is used up.
"""

from __future__ import annotations

from pipediag.capture.runtime import IteratorModel
from pipediag.session.recorded_model import ModelNode

_DRAINED_SHARE = 0.2
"""Own choice: where one batch in five came from the stock, its pace is not the pipeline's."""

_MOST_DRAINS = 3
_BUFFERS = ("Prefetch", "ParallelMap", "MapAndBatch", "ParallelBatch")


class Stock:
    """Compares the buffers at a window's begin and at its end."""

    def __init__(self) -> None:
        self._before: IteratorModel | None = None
        self._batches_before = 0
        self._drains = 0

    def begin(self, model: IteratorModel | None, batches: int) -> None:
        """A window begins, when the iterator has handed out so many batches."""
        self._before, self._batches_before = model, batches

    def used_up(self, model: IteratorModel | None, batches: int) -> bool:
        """Whether the window that ends lived on a stock, so that another one has begun instead.

        A pipeline whose stock goes on to shrink is taken as it is, after three such windows.
        """
        if self._drains == _MOST_DRAINS or not self._shrank(model, batches):
            return False
        self._drains += 1
        self.begin(model, batches)
        return True

    def _shrank(self, model: IteratorModel | None, batches: int) -> bool:
        if model is None or self._before is None:
            return False
        used = batches - self._batches_before
        before, after = _stocked(self._before.nodes), _stocked(model.nodes)
        if used <= 0:
            return False
        return before - after > _DRAINED_SHARE * used or _drained(self._before.nodes, model.nodes)


def _drained(before: list[ModelNode], after: list[ModelNode]) -> bool:
    """Whether a buffer further up has shrunk by a part of what it handed out.

    As one of many batches does behind which a cheap map follows, with a small buffer of its own.
    """
    was = {(node.id, node.name): node for node in before}
    for node in after:
        known = was.get((node.id, node.name))
        if known is None or not node.name.startswith(_BUFFERS):
            continue
        handed_out = node.num_elements - known.num_elements
        shrunk = known.buffered_elements - node.buffered_elements
        if handed_out > 0 and shrunk > _DRAINED_SHARE * handed_out:
            return True
    return False


def _stocked(nodes: list[ModelNode]) -> int:
    """Batches that wait in the last buffer before the consumer."""
    for node in sorted(nodes, key=lambda node: node.id):
        if node.name.startswith(_BUFFERS):
            return node.buffered_elements
    return 0
