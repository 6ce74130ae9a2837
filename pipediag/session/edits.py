"""Changes of a recommendation, by name, to the recorded pipeline or the model.

Plain dataclasses, because the user's process builds them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeGuard, get_args

from pipediag.vocabulary import Scalar

AUTOTUNE = -1


@dataclass(frozen=True)
class SetParameters:
    """An operation is called with other arguments: `map(f, num_parallel_calls=-1)`."""

    op_id: str
    parameters: dict[str, Scalar]
    do: Literal["set"] = "set"


@dataclass(frozen=True)
class Insert:
    """A new operation takes the elements of `after`, as those of `cache()` do.

    `cut_padding` is a map that cuts rows of ids to the longest of their batch, by default all
    inputs of one width alike.
    """

    after: str
    kind: str
    parameters: dict[str, Scalar] = field(default_factory=dict)
    do: Literal["insert"] = "insert"


CUT_PADDING = "cut_padding"
"""Kind of that map, and name of the function that it calls."""
BUCKETS = "bucket_by_sequence_length"
"""Kind of operation in place of a padded batch; `to_longest` drops the length to pad to."""
APART: dict[str, Scalar] = {"together": False}
"""Parameters with which it cuts each input by itself."""
SHORTEST_CUT = 16
"""Ids in a row. Own choice: shorter rows hold little padding, and may be other features."""


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
    vectorized: bool = False
    """The map's function is handed over to `tf.vectorized_map`, which gives it the batch's rows."""
    sources: dict[str, str] = field(default_factory=dict)
    """Files in which its function takes batches, as a patch writes them; known in a trial only."""
    do: Literal["move"] = "move"


IN_PROCESSES = "map_in_processes"
"""A map whose `numpy_function` has processes call its Python."""
IN_BATCHES = "in_batches"
"""A map or filter of single elements that takes batches, which are taken apart again behind it: of
several that hand them on, behind the `last`; only the `first` makes them."""


@dataclass(frozen=True)
class Replace:
    """Another kind of operation with the same function: `flat_map` becomes `interleave`."""

    op_id: str
    kind: str
    parameters: dict[str, Scalar] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    """Files in which its function takes batches, as those of a `Move`."""
    do: Literal["replace"] = "replace"


@dataclass(frozen=True)
class SetOptions:
    """Options of the dataset, by their dotted names: `threading.private_threadpool_size`."""

    options: dict[str, Scalar]
    do: Literal["options"] = "options"


ANEW = "anew"
"""A setting of a model with which its training function is made once more; no edit has it."""


@dataclass(frozen=True)
class SetModel:
    """A Keras model is compiled otherwise: `jit_compile`, `steps_per_execution`, ..."""

    settings: dict[str, Scalar]
    do: Literal["model"] = "model"


@dataclass(frozen=True)
class PredictOnBatch:
    """A line calls Keras' `predict_on_batch` instead of `predict`."""

    file: str
    line: int
    do: Literal["predict"] = "predict"


@dataclass(frozen=True)
class CompileCall:
    """A line calls a model, or a method of its, through a `tf.function`, and not eagerly."""

    file: str
    line: int
    model: str
    """The code that names the model there: `self.model`."""
    method: str | None = None
    do: Literal["compile_call"] = "compile_call"


@dataclass(frozen=True)
class ExtractStep:
    """The statements of a training step become a `tf.function` that the loop calls."""

    file: str
    line: int
    """Line on which its tape is opened."""
    numbers: tuple[str, ...] = ()
    """Floats of Python that it is given as tensors."""
    reduce_retracing: bool = True
    """One trace serves batches of any size."""
    do: Literal["extract"] = "extract"

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", tuple(self.numbers))


@dataclass(frozen=True)
class RewriteCall:
    """A known slow call in a function that makes elements, or a step, is written another way."""

    op_id: str | None
    """The operation whose elements it makes; None for Python of the loop's own."""
    file: str
    line: int
    function: str
    do: Literal["rewrite"] = "rewrite"


@dataclass(frozen=True)
class CompileFunction:
    """A function of the script's, which a training step calls, becomes a `tf.function`."""

    file: str
    line: int
    """Line at which its definition begins, with decorators."""
    function: str
    reduce_retracing: bool = False
    """True if it is one already, and is traced for all shapes instead of for each."""
    do: Literal["compile"] = "compile"


Change = (
    SetParameters
    | Insert
    | Remove
    | Move
    | Replace
    | SetOptions
    | SetModel
    | PredictOnBatch
    | CompileCall
    | ExtractStep
    | RewriteCall
    | CompileFunction
)
"""All kinds. A new one is applied in capture/replay/changes.py and patching/writing.py too."""


Touched = Literal["elements", "options", "model"]
"""Objects that a change affects: the elements of the pipeline, its options, or the model."""


Check = Literal["equal", "shape", "repeats", "outputs"]
"""Condition that must hold before an edit is timed: the same batches, batches of the same
structure, the same elements in two passes before an added cache, or the same outputs."""

ENOUGH_THE_SAME = 64
"""Elements that must be the same in two passes before a cache counts as right."""
PASSES_DIFFER = "Two passes over the data differ"
"""Begins the reason why a cache was not tried that would change what is trained on."""
RESULTS_DIFFER = (
    "The batches differ",
    "The elements differ",
    "The model's outputs differ",
)
"""Begin the reasons why other edits were not tried that would change what the script computes."""
FAILS = "The pipeline fails in a check"
"""Begins the reason why an edit was not tried with which, or without, no elements came."""


@dataclass(frozen=True)
class Edit:
    """One recommendation as changes that can be applied together."""

    id: str
    """`<rule>:<operation>`, or the rule alone."""
    label: str
    """The change in a few words: `num_parallel_calls=AUTOTUNE on the map in line 12`."""
    changes: tuple[Change, ...]
    check: Check | None = None
    caveat: str | None = None
    """Part that the measurement leaves out, as a sentence: `Measured once the cache is filled.`"""
    whole_epoch: bool = False
    """True if steps alone can't show what it does: it changes when an epoch's first batch comes."""
    loop_id: str | None = None
    """The loop whose pipeline it changes, where that is not the diagnosed one."""
    each_round: bool = False
    """True if a loop makes what it changes anew for each `fit`, whose first epoch fills a cache."""
    instead_of: str | None = None
    """Id of another edit against the same cause: this one is tried where that is not confirmed."""
    before_cache: tuple[Change, ...] = ()
    """Changes in place of its own where another edit puts a cache behind what it changes."""


_BY_NAME: dict[str, type[Change]] = {kind.do: kind for kind in get_args(Change)}


_TOUCHED: dict[type[Change], tuple[Touched, ...]] = {
    **dict.fromkeys((SetParameters, Insert, Remove, Move, Replace, RewriteCall), ("elements",)),
    SetOptions: ("options",),
    **dict.fromkeys((SetModel, CompileFunction), ("model",)),
    **dict.fromkeys((PredictOnBatch, CompileCall, ExtractStep), ()),
}


def touched(changes: Iterable[Change]) -> set[Touched]:
    """Return all that the changes take effect on. Raises KeyError for an unknown kind."""
    return {what for change in changes for what in _TOUCHED[type(change)]}


def traces_otherwise(changes: Iterable[Change]) -> bool:
    """Return True if the training step becomes another one, which is traced and compiled again."""
    return any(
        isinstance(change, SetModel)
        or (isinstance(change, CompileFunction) and not change.reduce_retracing)
        for change in changes
    )


def saves_traces(edit: Edit | None) -> bool:
    """Return True if its gain is in traces that are not made, and not in the steps between them."""
    return edit is not None and any(
        isinstance(change, CompileFunction) and change.reduce_retracing for change in edit.changes
    )


def saves_pauses(edit: Edit | None) -> bool:
    """Return True if its gain is in pauses between epochs, and not in the steps."""
    off = {"autotune.enabled": False}
    return edit is not None and any(
        isinstance(change, SetOptions) and change.options == off for change in edit.changes
    )


def timed_call(edit: Edit | None) -> PredictOnBatch | CompileCall | ExtractStep | None:
    """Return the change of a call, or of a step, that is timed where the script makes it."""
    timed = PredictOnBatch | CompileCall | ExtractStep
    changes = edit.changes if edit is not None else ()
    return next((one for one in changes if isinstance(one, timed)), None)


def adds_cache(change: Change) -> TypeGuard[Insert]:
    """Return True if elements are kept from then on."""
    return isinstance(change, Insert) and change.kind == "cache"


def cuts_rows(change: Change) -> bool:
    """Return True if batches are no longer padded to the one length that the model declares."""
    inserts = isinstance(change, Insert) and change.kind == CUT_PADDING
    return inserts or (isinstance(change, Replace) and "to_longest" in change.parameters)


def changes_together(edits: Sequence[Edit]) -> tuple[Change, ...]:
    """Return the changes of several edits, in their order."""
    cached = {one.after for edit in edits for one in edit.changes if adds_cache(one)}

    def of(edit: Edit) -> tuple[Change, ...]:
        places = {getattr(one, "op_id", None) for one in edit.before_cache}
        return edit.changes if cached.isdisjoint(places) else edit.before_cache

    return tuple(change for edit in edits for change in of(edit))


def as_written(change: Change) -> Change:
    """Return a cache as a user writes it; a trial asks for one that is filled and never ends."""
    if adds_cache(change):
        others = {name: value for name, value in change.parameters.items() if name != "elements"}
        return replace(change, parameters=others)
    return change


def changes_of(values: Iterable[Change | dict[str, Any]]) -> tuple[Change, ...]:
    """Return changes, also from what `asdict` made of them. Raises KeyError for unknown kinds."""
    return tuple(
        _BY_NAME[value["do"]](**value) if isinstance(value, dict) else value for value in values
    )


def contradiction(changes: Sequence[Change], kinds: Iterable[str]) -> str | None:
    """Return why changes that are right one by one can't be made together, as a sentence."""
    given: dict[tuple[str, str], Scalar] = {}
    for change in changes:
        place, values = getattr(change, "op_id", change.do), dict[str, Scalar]()
        match change:
            case (
                SetParameters(parameters=values)
                | SetOptions(options=values)
                | SetModel(settings=values)
            ):
                pass
        for name, value in values.items():
            if given.setdefault((place, name), value) != value:
                return f"Two of the changes set `{name}` to different values."
    if _caches_batches(changes, kinds):
        return (
            "A cache after an operation that another change moves after the batch would hold the "
            "same batches in every epoch."
        )
    if _parts_batches(changes):
        return "Between operations that hand batches on, another one would take them for elements."
    return None


def _caches_batches(changes: Sequence[Change], kinds: Iterable[str]) -> bool:
    """Return True if changes that are right one by one would cache batches instead of examples.

    One moves an operation after the batch, another puts a cache after that operation: where the
    pipeline shuffles, the batches would stay as they were in the first epoch.
    """
    moved = {one.op_id for one in changes if isinstance(one, Move)}
    cached = any(adds_cache(one) and one.after in moved for one in changes)
    return cached and "shuffle" in set(kinds)


def _parts_batches(changes: Sequence[Change]) -> bool:
    """Return True if changes that are right one by one would put an operation between others that
    hand on batches of a few elements each: a shuffle there would mix batches."""
    batched = [one for one in changes if isinstance(one, Replace) and one.kind == IN_BATCHES]
    handing_on = {one.op_id for one in batched if one.parameters.get("last") is False}
    several = {one.op_id for one in batched if "last" in one.parameters}
    return any(
        (isinstance(one, Insert | Move) and one.after in handing_on)
        or (isinstance(one, Move | Remove) and one.op_id in several)
        for one in changes
    )
