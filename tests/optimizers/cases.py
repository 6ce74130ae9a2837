"""The published lazy rules in plain NumPy, in 64 bits, and the optimizers that follow them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Sparse = tuple[NDArray[np.int64], Array]
"""Indices, and a value for each."""
Step = Callable[[dict[str, Array], Array, float, int], Array]
"""Slots of a row, its gradient, the learning rate and the number of the step, from 1; changes the
slots and gives what to take from the row."""


@dataclass(frozen=True)
class Rule:
    """Slots by name with what they start from, and what a step does to a row."""

    slots: dict[str, float]
    step: Step
    weight_decay: float = 0.0


def trained(rule: Rule, table: Array, batches: Iterable[Sparse], rates: Iterable[float]) -> Array:
    """Return the table after these batches."""
    table = table.astype(float)
    slots = {name: np.full(table.shape, start) for name, start in rule.slots.items()}
    for number, ((indices, values), rate) in enumerate(zip(batches, rates, strict=False), start=1):
        for row in set(indices.tolist()):
            gradient = values[indices == row].astype(float).sum(axis=0)
            own = {name: slot[row] for name, slot in slots.items()}
            table[row] -= rate * rule.weight_decay * table[row]
            table[row] -= rule.step(own, gradient, rate, number)
    return table


def adam(*, amsgrad: bool = False, weight_decay: float = 0.0) -> Rule:
    def step(own: dict[str, Array], g: Array, rate: float, t: int) -> Array:
        own["m"][:] = 0.9 * own["m"] + 0.1 * g
        own["v"][:] = 0.999 * own["v"] + 0.001 * g**2
        own["largest"][:] = np.maximum(own["largest"], own["v"])
        v = own["largest"] if amsgrad else own["v"]
        return rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * own["m"] / (np.sqrt(v) + 1e-7)

    return Rule({"m": 0.0, "v": 0.0, "largest": 0.0}, step, weight_decay)


def adamax() -> Rule:
    def step(own: dict[str, Array], g: Array, rate: float, t: int) -> Array:
        own["m"][:] = 0.9 * own["m"] + 0.1 * g
        own["u"][:] = np.maximum(0.999 * own["u"], np.abs(g))
        return rate / (1 - 0.9**t) * own["m"] / (own["u"] + 1e-7)

    return Rule({"m": 0.0, "u": 0.0}, step)


def adagrad() -> Rule:
    def step(own: dict[str, Array], g: Array, rate: float, t: int) -> Array:
        own["sum"][:] += g**2
        return rate * g / np.sqrt(own["sum"] + 1e-7)

    return Rule({"sum": 0.1}, step)


def rmsprop(*, momentum: float = 0.0, centered: bool = False) -> Rule:
    def step(own: dict[str, Array], g: Array, rate: float, t: int) -> Array:
        own["v"][:] = 0.9 * own["v"] + 0.1 * g**2
        own["a"][:] = 0.9 * own["a"] + 0.1 * g
        scale = own["v"] - own["a"] ** 2 if centered else own["v"]
        own["s"][:] = momentum * own["s"] + rate * g / np.sqrt(scale + 1e-7)
        return own["s"].copy()

    return Rule({"v": 0.0, "a": 0.0, "s": 0.0}, step)


def sgd(*, momentum: float = 0.0, nesterov: bool = False) -> Rule:
    def step(own: dict[str, Array], g: Array, rate: float, t: int) -> Array:
        own["m"][:] = momentum * own["m"] - rate * g
        return rate * g - momentum * own["m"] if nesterov else -own["m"]

    return Rule({"m": 0.0}, step)


RATE = 0.05


@dataclass(frozen=True)
class Case:
    """An optimizer by the name that it has in Keras, and the arguments that it is made with."""

    keras_name: str
    rule: Rule
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def lazy_name(self) -> str:
        return f"Lazy{self.keras_name}"

    def lazy(self, **more: Any) -> Any:
        import pipediag.optimizers

        kind = getattr(pipediag.optimizers, self.lazy_name)
        return kind(**{"learning_rate": RATE, **self.arguments, **more})

    def keras(self, **more: Any) -> Any:
        import keras

        kind = getattr(keras.optimizers, self.keras_name)
        return kind(**{"learning_rate": RATE, **self.arguments, **more})

    def __str__(self) -> str:
        return " ".join([self.lazy_name, *self.arguments])


CASES = (
    Case("Adam", adam()),
    Case("Adam", adam(amsgrad=True), {"amsgrad": True}),
    Case("AdamW", adam(weight_decay=0.3), {"weight_decay": 0.3}),
    Case("Adamax", adamax()),
    Case("Adagrad", adagrad()),
    Case("RMSprop", rmsprop()),
    Case(
        "RMSprop",
        rmsprop(momentum=0.5, centered=True),
        {"momentum": 0.5, "centered": True},
    ),
    Case("SGD", sgd()),
    Case("SGD", sgd(momentum=0.5), {"momentum": 0.5}),
    Case(
        "SGD",
        sgd(momentum=0.5, nesterov=True),
        {"momentum": 0.5, "nesterov": True},
    ),
)


def batches(rows: int, dim: int, steps: int = 5, ids: int = 6) -> list[Sparse]:
    """Sparse gradients with repeated rows, rows that come back, and rows that never come."""
    random = np.random.default_rng(rows)
    return [
        (random.integers(0, rows // 2, ids), random.normal(size=(ids, dim))) for _ in range(steps)
    ]
