"""What a recommendation would change: a few named changes to the recorded pipeline or the model.

Plain dataclasses, because the user's process builds them too, where nothing may be imported that
the script would not have imported. A session keeps them beside each finding, so that a reader, a
trial and a tool that patches source all speak of the same edit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pipediag.vocabulary import Scalar

AUTOTUNE = -1
"""The value of `tf.data.AUTOTUNE`."""


@dataclass(frozen=True)
class SetParameters:
    """An operation is called with other arguments: `map(f, num_parallel_calls=-1)`."""

    op_id: str
    parameters: dict[str, Scalar]
    do: Literal["set"] = "set"


@dataclass(frozen=True)
class Insert:
    """A new operation takes the elements of `after`: `cache()`, `prefetch(buffer_size=-1)`."""

    after: str
    kind: str
    parameters: dict[str, Scalar] = field(default_factory=dict)
    do: Literal["insert"] = "insert"


@dataclass(frozen=True)
class Remove:
    """An operation is left out; what read from it reads from what it read from."""

    op_id: str
    do: Literal["remove"] = "remove"


@dataclass(frozen=True)
class Move:
    """An operation takes its elements from `after` instead, up or down the same chain."""

    op_id: str
    after: str
    do: Literal["move"] = "move"


@dataclass(frozen=True)
class Replace:
    """Another kind of operation with the same function: `flat_map` becomes `interleave`."""

    op_id: str
    kind: str
    parameters: dict[str, Scalar] = field(default_factory=dict)
    do: Literal["replace"] = "replace"


@dataclass(frozen=True)
class SetOptions:
    """Options of the dataset, by their dotted names: `threading.private_threadpool_size`."""

    options: dict[str, Scalar]
    do: Literal["options"] = "options"


@dataclass(frozen=True)
class SetModel:
    """The same Keras model compiled otherwise: `jit_compile`, `steps_per_execution`, ..."""

    settings: dict[str, Scalar]
    do: Literal["model"] = "model"


Change = SetParameters | Insert | Remove | Move | Replace | SetOptions | SetModel

Check = Literal["equal", "shape"]
"""What must hold on real elements before an edit is timed: the same batches as before, or batches
of the same structure."""


@dataclass(frozen=True)
class Edit:
    """One recommendation as changes that can be applied together."""

    id: str
    """`<rule>:<operation>`, or the rule alone."""
    label: str
    """What is tried, in a few words: `num_parallel_calls=AUTOTUNE on the map in line 12`."""
    changes: tuple[Change, ...]
    check: Check | None = None
    caveat: str | None = None
    """What the measurement leaves out, as a sentence: `Measured once the cache is filled.`"""
    once: bool = False
    """Whether it may only be tried where the script is stopped afterwards."""


_BY_NAME: dict[str, type[Change]] = {
    "set": SetParameters,
    "insert": Insert,
    "remove": Remove,
    "move": Move,
    "replace": Replace,
    "options": SetOptions,
    "model": SetModel,
}


def changes_from_json(values: list[dict[str, Any]]) -> tuple[Change, ...]:
    """Changes as `asdict` gives them, read back.

    Raises:
        KeyError: a change of a kind that is not known.
    """
    return tuple(_BY_NAME[value["do"]](**value) for value in values)
