"""Records the first batches and losses of a seeded run, by which two versions are compared."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import sys
import time
from functools import partial
from typing import Any

MOST_STEPS = 200
MOST_ROWS = 50_000
LONGEST_S = 60.0
"""After the first step. Own choices: enough to see another order or another loss, in one minute."""

_UNREADABLE = "a component of its elements is no plain tensor"


class Results:
    """Rows and losses as the first training loop gets them; the run ends when it has enough.

    Batches pass through a `map` behind the dataset whose iterator the loop makes, so they are
    seen as they are handed over, also inside a tf.function. A loss is what a tape is asked to
    differentiate.
    """

    def __init__(self, path: str, seed: int) -> None:
        self._path = path
        self._seed = seed
        self._read: list[_Batches] = []
        self._trains: _Batches | None = None
        self._losses: list[float] = []
        self._began_s: float | None = None

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
        """Write what was recorded, in one piece."""
        seen = self._trains or _Batches("no training loop took them from a dataset in Python")
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
        tensorflow = sys.modules["tensorflow"]
        if not tensorflow.executing_eagerly() or type(dataset).__name__.endswith("Generator"):
            return dataset
        batches = _Batches()
        self._read.append(batches)
        try:
            return dataset.map(partial(_pass_on, tensorflow, batches))
        except Exception as error:
            # The script has its dataset in any case.
            batches.problem = f"{_UNREADABLE} ({type(error).__name__})"
            return dataset

    def _watch_gradients(self, module: Any) -> None:
        gradient = module.GradientTape.gradient

        def watched(tape: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            tensorflow = sys.modules["tensorflow"]
            if self._trains is None and self._read:
                self._trains = self._read[-1]
            for loss in tensorflow.nest.flatten(target):
                mean = tensorflow.reduce_mean(loss)
                tensorflow.numpy_function(self._step, [mean], [])
            return gradient(tape, target, *args, **kwargs)

        module.GradientTape.gradient = watched

    def _step(self, loss: Any) -> None:
        self._losses.append(float(loss))
        now = time.monotonic()
        self._began_s = self._began_s or now
        if len(self._losses) < MOST_STEPS and now - self._began_s < LONGEST_S:
            return
        self.write()
        for child in multiprocessing.active_children():
            child.kill()
        os._exit(0)


class _Batches:
    """Rows that one iterator has handed over."""

    def __init__(self, problem: str | None = None) -> None:
        self.problem = problem
        self.rows: list[list[str | float]] = []
        """Each as a digest of what is exact in it, and one number for each component of floats."""

    def add(self, *components: Any) -> None:
        """Add a batch; its rows are told apart where all its components have as many."""
        numpy = sys.modules["numpy"]
        arrays = [numpy.asarray(one) for one in components]
        sizes = {one.shape[0] if one.ndim else None for one in arrays}
        size = sizes.pop() if len(sizes) == 1 else None
        for number in range(size or 1):
            if len(self.rows) == MOST_ROWS:
                return
            row = arrays if size is None else [one[number] for one in arrays]
            self.rows.append(_fingerprint(numpy, row))


def _fingerprint(numpy: Any, row: list[Any]) -> list[str | float]:
    exact, projected = hashlib.blake2b(digest_size=8), []
    for value in row:
        array = numpy.asarray(value)
        exact.update(repr(array.shape).encode())
        if array.dtype.kind == "f":
            flat = array.astype(numpy.float64).ravel()
            # Weights that no two places share, so that moved values are seen.
            projected.append(float(flat @ numpy.cos(numpy.arange(flat.size))))
        else:
            plain = array.dtype.kind != "O"
            exact.update(array.tobytes() if plain else repr(array.tolist()).encode())
    return [exact.hexdigest(), *projected]


def _pass_on(tensorflow: Any, batches: _Batches, *element: Any) -> Any:
    """Return the element, which the graph hands over once it was recorded."""
    given = element if len(element) != 1 else element[0]
    flat = tensorflow.nest.flatten(given, expand_composites=True)
    recorded = tensorflow.numpy_function(batches.add, flat, [])
    with tensorflow.control_dependencies([recorded]):
        passed = [tensorflow.identity(one) for one in flat]
    return tensorflow.nest.pack_sequence_as(given, passed, expand_composites=True)


def _without_xla(module: Any) -> None:
    """Have no function compiled by XLA, which calls no Python."""
    init = module.Function.__init__

    def init_without(function: Any, *args: Any, **kwargs: Any) -> None:
        init(function, *args, **{**kwargs, "jit_compile": None})

    module.Function.__init__ = init_without
