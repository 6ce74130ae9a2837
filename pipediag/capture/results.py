"""Records the first batches and losses of a seeded run, by which two versions are compared."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

MOST_STEPS = 200
MOST_NUMBERS = 1_000_000
LONGEST_S = 60.0
"""Seconds after the first step. Own choices: enough to see another order or another loss, in one
minute."""
LONGEST_START_S = 300.0
"""Seconds from the first batch, of a preview or for statistics, to the first step."""
BLOCKS = 64
"""Numbers for each component of a row: vectors of up to so many floats are compared in full."""

_NO_STEP = "no step took gradients with tf.GradientTape, so its training batches are not known"
_NOT_SEEN = "its training loop takes none from a dataset in Python, step by step"
_DISTRIBUTED = "its training loop takes them from a distributed dataset"


class Results:
    """Rows and losses as the first training loop gets them; the run ends when it has enough.

    Batches pass through a `map` behind the dataset whose iterator the loop makes. The training's
    iterator is the last one read before the first step, if it is read again later.
    """

    def __init__(self, path: str, seed: int) -> None:
        self._path = path
        self._seed = seed
        self._began_s: float | None = None
        self._last: _Batches | None = None
        self._trains: _Batches | None = None
        self._read_before = 0
        self._not_seen = _NOT_SEEN
        self._losses: list[float] = []

    def install(self) -> None:
        """Seed Python now, and NumPy and TensorFlow as soon as the script imports them."""
        import wrapt

        random.seed(self._seed)
        for module, hook in {
            "numpy.random": self._seed_numpy,
            "tensorflow.python.eager.context": lambda module: module.set_global_seed(self._seed),
            "tensorflow.python.eager.backprop": self._watch_gradients,
            "tensorflow.python.data.ops.iterator_ops": self._watch_iterators,
            "tensorflow.python.eager.polymorphic_function.polymorphic_function": _without_xla,
        }.items():
            wrapt.register_post_import_hook(hook, module)

    def write(self) -> None:
        seen = self._trains
        if seen is None or seen.count == self._read_before:
            seen = _Batches(self._not_seen if self._losses else _NO_STEP)
        content = {"rows": seen.rows, "problem": seen.problem, "losses": self._losses}
        with open(f"{self._path}.new", "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(content, file)
        os.replace(f"{self._path}.new", self._path)  # noqa: PTH105

    def _seed_numpy(self, module: Any) -> None:
        module.seed(self._seed)
        make = module.default_rng
        module.default_rng = lambda seed=None: make(self._seed if seed is None else seed)

    def _watch_iterators(self, module: Any) -> None:
        create = module.OwnedIterator._create_iterator

        def create_iterator(iterator: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
            create(iterator, self._observed(dataset), *args, **kwargs)

        module.OwnedIterator._create_iterator = create_iterator

    def _observed(self, dataset: Any) -> Any:
        """Return the dataset with a `map` that records, or as it is where that is impossible."""
        tensorflow = sys.modules["tensorflow"]
        if self._losses or not tensorflow.executing_eagerly():
            return dataset
        source = dataset
        while hasattr(source, "_input_dataset"):
            source = source._input_dataset
        if type(source).__name__.endswith("PerDeviceGenerator"):
            self._not_seen = _DISTRIBUTED
            return dataset
        try:
            is_tuple = type(dataset.element_spec) is tuple  # which tf.data takes apart
            take = partial(self.take, _Batches())
            return dataset.map(partial(_pass_on, tensorflow, take, is_tuple))
        except Exception as error:
            self._not_seen = f"a component of its elements is no tensor ({type(error).__name__})"
            return dataset

    def _watch_gradients(self, module: Any) -> None:
        gradient = module.GradientTape.gradient

        def watched(tape: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            tensorflow = sys.modules["tensorflow"]
            # What can't be differentiated is for TensorFlow to refuse.
            with suppress(Exception):
                for loss in tensorflow.nest.flatten(target):
                    tensorflow.numpy_function(self.step, [tensorflow.reduce_mean(loss)], [])
            return gradient(tape, target, *args, **kwargs)

        module.GradientTape.gradient = watched

    def take(self, batches: _Batches, *components: Any) -> None:
        batches.add(components)
        self._last = batches
        self._end_in_time()

    def step(self, loss: Any) -> None:
        if not self._losses:
            self._began_s = None
            self._trains = self._last
            self._read_before = self._trains.count if self._trains else 0
        self._losses.append(float(loss.real))
        self._end_in_time()

    def _end_in_time(self) -> None:
        now = time.monotonic()
        self._began_s = self._began_s or now
        longest_s = LONGEST_S if self._losses else LONGEST_START_S
        if len(self._losses) < MOST_STEPS and now - self._began_s < longest_s:
            return
        try:
            self.write()
            for child in multiprocessing.active_children():
                child.kill()
        finally:
            os._exit(0)


class _Batches:
    def __init__(self, problem: str | None = None) -> None:
        self.problem = problem
        self.count = 0
        self.rows: list[list[str | float]] = []
        """Each as a digest of what is exact in it, and numbers for its floats."""
        self._numbers = 0

    def add(self, components: Sequence[Any]) -> None:
        """Add a batch; what is wrong with it may not end the script."""
        self.count += 1
        try:
            for row in _rows(sys.modules["numpy"], components):
                if self._numbers >= MOST_NUMBERS:
                    return
                self.rows.append(_fingerprint(sys.modules["numpy"], row))
                self._numbers += len(self.rows[-1])
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"


def _rows(numpy: Any, components: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Return the rows of a batch, or all of it as one where its components have not as many."""
    arrays = [numpy.asarray(one) for one in components]
    sizes = {one.shape[:1] for one in arrays}
    return zip(*arrays, strict=True) if len(sizes) == 1 and () not in sizes else [arrays]


def _fingerprint(numpy: Any, row: Sequence[Any]) -> list[str | float]:
    """Return a digest of what is exact, the sum of all floats by which rows are sorted, and sums
    of blocks of them, so that no large value hides what others are."""
    exact, blocks = hashlib.blake2b(digest_size=8), []
    for value in row:
        array = numpy.asarray(value)
        exact.update(repr(array.shape).encode())
        if array.dtype.kind != "f":
            plain = array.dtype.kind != "O"
            exact.update(array.tobytes() if plain else repr(array.tolist()).encode())
        elif array.size:
            flat = array.astype(numpy.float64).ravel()
            finite = numpy.isfinite(flat)
            exact.update(finite.tobytes())
            # Weights that no two places share, so that moved values are seen.
            weighted = numpy.where(finite, flat, 0.0) * numpy.cos(numpy.arange(flat.size))
            count = min(BLOCKS, flat.size)
            begins = numpy.arange(count) * flat.size // count
            blocks += numpy.add.reduceat(weighted, begins).tolist()
    return [exact.hexdigest(), sum(blocks), *blocks]


def _pass_on(tensorflow: Any, take: Callable[..., None], is_tuple: bool, *element: Any) -> Any:
    """Return the element, which the graph hands over once it was recorded."""
    given = element if is_tuple else element[0]
    flat = tensorflow.nest.flatten(given, expand_composites=True)
    recorded = tensorflow.numpy_function(take, flat, [])
    with tensorflow.control_dependencies([recorded]):
        passed = [tensorflow.identity(one) for one in flat]
    return tensorflow.nest.pack_sequence_as(given, passed, expand_composites=True)


def _without_xla(module: Any) -> None:
    """Have no function compiled by XLA, which calls no Python."""
    init = module.Function.__init__

    def init_without(function: Any, *args: Any, **kwargs: Any) -> None:
        init(function, *args, **{**kwargs, "jit_compile": None})

    module.Function.__init__ = init_without
