"""The optimizers under test, each beside Keras' own and the rule that it is to follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.optimizers import reference
from tests.optimizers.reference import Rule, Sparse

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
    Case("Adam", reference.adam()),
    Case("Adam", reference.adam(amsgrad=True), {"amsgrad": True}),
    Case("AdamW", reference.adam(weight_decay=0.3), {"weight_decay": 0.3}),
    Case("Adamax", reference.adamax()),
    Case("Adagrad", reference.adagrad()),
    Case("RMSprop", reference.rmsprop()),
    Case(
        "RMSprop",
        reference.rmsprop(momentum=0.5, centered=True),
        {"momentum": 0.5, "centered": True},
    ),
    Case("SGD", reference.sgd()),
    Case("SGD", reference.sgd(momentum=0.5), {"momentum": 0.5}),
    Case(
        "SGD",
        reference.sgd(momentum=0.5, nesterov=True),
        {"momentum": 0.5, "nesterov": True},
    ),
)


def batches(rows: int, dim: int, steps: int = 5, ids: int = 6) -> list[Sparse]:
    """Sparse gradients with repeated rows, rows that come back, and rows that never come."""
    random = np.random.default_rng(rows)
    return [
        (random.integers(0, rows // 2, ids), random.normal(size=(ids, dim))) for _ in range(steps)
    ]
