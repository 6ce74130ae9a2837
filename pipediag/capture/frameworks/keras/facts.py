"""Facts from Keras's frames on the stack and its objects: phases, models, callbacks and tables.

To read frames needs no patch of Keras, and works alike for all its versions.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
import weakref
from collections.abc import Iterable, Iterator
from itertools import takewhile
from types import FrameType
from typing import Any

from pipediag.capture.callsites import (
    KERAS,
    CallSite,
    call_site,
    is_keras_class,
    is_pipediags,
    is_users,
    locals_of,
    package_of,
    unwrap,
)
from pipediag.capture.guard import Guard
from pipediag.capture.runtime import TrainersPhase
from pipediag.capture.trying.model_variants import (
    all_layers,
    fixed_lengths,
    input_layers,
    inseparable,
)
from pipediag.session.recorded_loops import Callback, KerasUse, RecordedVariable
from pipediag.vocabulary import LoopRole, Scalar

_PHASES: dict[str, LoopRole] = {
    "fit": "training",
    "evaluate": "evaluate",
    "predict": "predict",
    "adapt": "adapt",
}
_ONE_BATCH = "single_batch_iterator"
_DECIDING = frozenset({"EarlyStopping", "ModelCheckpoint", "ReduceLROnPlateau"})
_BATCH_HOOKS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
name = "Keras"


def phase_of(frames: Iterable[FrameType]) -> TrainersPhase | None:
    """Return the Keras phase that the frames (innermost first) run in, or None outside of Keras.

    Code of the script's that a phase calls, as a callback or a generator does, is outside of it.
    """
    found: TrainersPhase | None = None
    for frame in frames:
        name = frame.f_code.co_name
        if found is None and is_users(frame.f_code.co_filename):
            return None
        if name not in _PHASES or package_of(frame.f_code.co_filename) not in KERAS:
            continue
        if name == "fit" and found is not None and found.role == "evaluate":
            return TrainersPhase("validation", "evaluate inside fit", found.frame)
        if found is None:
            found = TrainersPhase(_PHASES[name], name, frame)
    return found


def passes_a_batch_on(frames: Iterable[FrameType]) -> bool:
    """Return True if a method of Keras 2 like `train_on_batch` makes an iterator of its batch."""
    libraries = takewhile(lambda one: not is_users(one.f_code.co_filename), frames)
    return any(_is_kerass(frame, _ONE_BATCH) for frame in libraries)


def fed_model(frames: Iterable[FrameType]) -> Any:
    """Return the model whose `train_on_batch` the frames (innermost first) run in."""
    found = (locals_of(one)["self"] for one in frames if _is_kerass(one, "train_on_batch"))
    return next(found, None)


def _is_kerass(frame: FrameType, name: str) -> bool:
    return frame.f_code.co_name == name and package_of(frame.f_code.co_filename) in KERAS


def describe(frame: FrameType) -> KerasUse:
    """Describe the model and the arguments of a running `fit`."""
    values = locals_of(frame)
    model = values["self"]
    callbacks = _listed(values.get("callbacks"))
    # Classes that end a training, change its rate or choose the model to keep, also where the
    # user's derive from them.
    deciding = [one for one in callbacks if _attributes(one).get("save_best_only", True)]
    bases = dict.fromkeys(base.__name__ for each in deciding for base in type(each).__mro__)
    adapter = _adapter(frame)
    source = values.get("x")
    file, line = _defined_at(type(source))
    dataset = getattr(adapter, "py_dataset", None)
    compile_file, compile_line = COMPILED.of(model)
    return KerasUse(
        model=type(model).__name__,
        optimizer=_class_name(getattr(model, "optimizer", None)),
        run_eagerly=bool(getattr(model, "run_eagerly", False)),
        jit_compile=getattr(model, "jit_compile", None),
        steps_per_execution=batches_per_call(frame),
        epochs=_epochs(frame),
        steps_per_epoch=_steps_per_epoch(frame),
        data_adapter=_class_name(adapter),
        source=_class_name(source),
        source_file=file,
        source_line=line,
        workers=_number(getattr(dataset, "workers", None)),
        use_multiprocessing=getattr(dataset, "use_multiprocessing", None),
        callbacks=[describe_callback(one) for one in _users(callbacks)],
        deciding_callbacks=[name for name in bases if name in _DECIDING],
        variable_bytes=variable_bytes(model, "variables"),
        trainable_bytes=variable_bytes(model, "trainable_variables"),
        optimizer_bytes=variable_bytes(getattr(model, "optimizer", None), "variables"),
        optimizer_settings=settings_of(getattr(model, "optimizer", None)),
        input_layers=input_layers(model),
        inseparable=inseparable(model),
        fixed_lengths=fixed_lengths(model),
        legacy=any(base.__module__.startswith("tf_keras.") for base in type(model).__mro__),
        compile_file=compile_file,
        compile_line=compile_line,
    )


def model_of(frame: FrameType) -> Any:
    """Return the model whose `fit` is running."""
    return locals_of(frame)["self"]


def planned_steps(frame: FrameType) -> int | None:
    """Return the steps that a running `fit` was asked for; None where Keras does not know yet."""
    epochs, steps = _epochs(frame), _steps_per_epoch(frame)
    if epochs is None or not steps:
        return steps if epochs is not None else None
    # An epoch goes on where the one before it ended, and ends where data of known length does. The
    # last call of several steps in an epoch takes all of its batches, too.
    held = _number(getattr(data_walker(frame), "_num_batches", None)) or steps
    at_once = _number(getattr(model_of(frame), "steps_per_execution", None)) or 1
    taken = min(held, math.ceil(steps / at_once) * at_once)
    passes, rest = divmod(epochs, math.ceil(held / taken))
    return passes * held + rest * taken


def steps_given(frame: FrameType) -> int | None:
    """Return the steps after which a running `evaluate` or `predict` was told to stop."""
    return _number(locals_of(frame).get("steps"))


def _epochs(frame: FrameType) -> int | None:
    """Return the epochs that a running `fit` is to make, from its `initial_epoch` on."""
    values = locals_of(frame)
    epochs, first = _number(values.get("epochs")), _number(values.get("initial_epoch"))
    return None if epochs is None else max(0, epochs - (first or 0))


def _steps_per_epoch(frame: FrameType) -> int | None:
    walker = data_walker(frame)
    return (
        _number(locals_of(frame).get("steps_per_epoch"))
        or _number(getattr(walker, "num_batches", None))
        or _number(getattr(walker, "inferred_steps", None))
    )


def batches_per_call(frame: FrameType) -> int:
    """Return `steps_per_execution` of the model whose `fit` is running."""
    model = locals_of(frame).get("self")
    # Keras 2.14 has no property for it.
    own = getattr(model, "_steps_per_execution", None)
    return _number(getattr(model, "steps_per_execution", own)) or 1


def batch_size(frame: FrameType) -> int | None:
    """Return the rows of a batch as the data adapter of a running `fit` knows them."""
    adapter = _adapter(frame)
    size = getattr(adapter, "batch_size", None)
    size = _number(size() if callable(size) else size)
    if size is not None:
        return size
    size = _number(getattr(getattr(adapter, "py_dataset", None), "batch_size", None))
    return size or _rows(getattr(adapter, "_first_batches", None))


def _rows(batches: Any) -> int | None:
    """Return the leading dimension of the first array in nested sequences and dicts of arrays."""
    while batches is not None and not hasattr(batches, "shape"):
        if isinstance(batches, dict):
            batches = list(batches.values())
        batches = batches[0] if isinstance(batches, list | tuple) and batches else None
    return _number(batches.shape[0]) if batches is not None and len(batches.shape) else None


def data_walker(frame: FrameType) -> Any:
    """Return what walks over the data of a `fit`: an EpochIterator, or tf_keras's DataHandler."""
    values = locals_of(frame)
    return values.get("epoch_iterator") or values.get("data_handler")


def _adapter(frame: FrameType) -> Any:
    walker = data_walker(frame)
    return getattr(walker, "data_adapter", None) or getattr(walker, "_adapter", None)


def _users(callbacks: Iterable[Any]) -> Iterator[Any]:
    """Iterate over the callbacks that are neither Keras's nor pipediag's, or call the user's code
    at batches."""
    for one in callbacks:
        file = _file_of(type(one))
        if (package_of(file) not in KERAS and not is_pipediags(file)) or _given_hooks(one):
            yield one


def _given_hooks(callback: Any) -> dict[str, Any]:
    """Return the functions for batches that it was given, as a `LambdaCallback` is."""
    own = _attributes(callback)
    hooks = {name: own[name] for name in _BATCH_HOOKS if callable(own.get(name))}
    return {name: one for name, one in hooks.items() if package_of(_code_file(one)) not in KERAS}


def _attributes(callback: Any) -> dict[str, Any]:
    """Return what it keeps, so that no property of a script's own class runs."""
    return getattr(callback, "__dict__", {})


def _code_file(function: Any) -> str:
    code = getattr(unwrap(function), "__code__", None)
    return "" if code is None else str(code.co_filename)


def _listed(callbacks: Any) -> list[Any]:
    listed = getattr(callbacks, "callbacks", callbacks) or []
    return list(listed) if isinstance(listed, list | tuple) else [listed]


def describe_callback(callback: Any) -> Callback:
    """Describe its class and hooks at batches, with the place of the first one or of the class."""
    own = type(callback)
    file, line = _defined_at(own)
    written = [base for base in own.__mro__ if package_of(_file_of(base)) not in KERAS]
    given = _given_hooks(callback)
    hooks = [n for n in _BATCH_HOOKS if n in given or any(n in vars(base) for base in written)]
    for name in hooks:
        hook = given[name] if name in given else getattr(own, name)
        code = getattr(unwrap(hook), "__code__", None)
        if code is not None:
            file, line = code.co_filename, code.co_firstlineno
            break
    return Callback(name=own.__name__, file=file, line=line, batch_hooks=hooks)


def _defined_at(own: type) -> tuple[str | None, int | None]:
    """Return where a class of the user is defined: the first line of one of its methods."""
    for member in vars(own).values():
        code = getattr(unwrap(member), "__code__", None) if callable(member) else None
        if code is not None and package_of(code.co_filename) is None:
            return code.co_filename, code.co_firstlineno
    return None, None


def _file_of(own: type) -> str:
    return getattr(sys.modules.get(own.__module__), "__file__", None) or ""


def _class_name(value: Any) -> str | None:
    return None if value is None else type(value).__name__


def _number(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


_ARGUMENTS = "momentum weight_decay use_ema global_clipnorm gradient_accumulation_steps".split()


def settings_of(optimizer: Any) -> dict[str, Scalar]:
    """Return those that are set, of the inner optimizer where one that scales the loss is around.

    They are read where the optimizer keeps them, so that no property of a script's own class runs.
    """
    kept = getattr(optimizer, "__dict__", {})
    inner = kept.get("inner_optimizer")
    if inner is not None:
        return settings_of(inner)
    values = {name: kept.get(name) for name in _ARGUMENTS}
    return {
        name: value for name, value in values.items() if value and isinstance(value, int | float)
    }


def variable_bytes(owner: Any, name: str) -> int | None:
    """Return the bytes of all variables listed under this name; None before they are built."""
    try:
        listed = getattr(owner, name)
        variables = listed() if callable(listed) else listed
        return sum(int(math.prod(one.shape)) * _item_bytes(one.dtype) for one in variables)
    except Exception:  # a model that is not built may raise anything
        return None


def _item_bytes(dtype: Any) -> int:
    """Return the size of a type: a name in Keras 3, TensorFlow's own type in Keras 2."""
    size = getattr(dtype, "size", None)
    if size is not None:
        return int(size)
    bits = re.search(r"\d+", str(dtype))  # the first number, as of `float8_e4m3fn`
    return int(bits[0]) // 8 if bits else 1


class Lines:
    """Lines of the script at which objects were last given to a method."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._sites: weakref.WeakKeyDictionary[Any, CallSite] = weakref.WeakKeyDictionary()

    def watch(self, owner: Any, method: str, guard: Guard) -> None:
        signature = inspect.signature(getattr(owner, method))
        guard.tell_before(owner, method, f"noting where {self._what}", self._note)
        # Keras reads the names of its arguments, of the function that it finds there.
        getattr(owner, method).__signature__ = signature

    def _note(self, owner: Any, *_: Any, **__: Any) -> None:
        site = call_site()
        if site is not None:
            self._sites[owner] = site

    def of(self, owner: Any) -> tuple[str | None, int | None]:
        try:
            site = self._sites.get(owner)
        except TypeError:  # a class of the user's whose instances take no weak reference
            site = None
        return (None, None) if site is None else (site.file, site.line)


MADE, COMPILED = Lines("layers are made"), Lines("models are compiled")


def known_tables(model: Any) -> list[tuple[Any, RecordedVariable]]:
    """Return the variables of its Embedding layers, and of derived classes, with their records; in
    submodels too."""
    return [
        (_variable(layer), _record(layer))
        for layer in all_layers(model)
        if any(is_keras_class(one, ("Embedding",)) for one in type(layer).__mro__) and layer.built
    ]


def _record(layer: Any) -> RecordedVariable:
    file, line = MADE.of(layer)
    return RecordedVariable(
        layer=layer.name,
        rows=int(layer.input_dim),  # may be NumPy's
        dim=int(layer.output_dim),
        dtype=getattr(layer.embeddings.dtype, "name", str(layer.embeddings.dtype)),
        trainable=layer.trainable,
        file=file,
        line=line,
        mask_zero=bool(getattr(layer, "mask_zero", False)),
        regularizer=_class_name(getattr(layer, "embeddings_regularizer", None)),
        constraint=_class_name(getattr(layer, "embeddings_constraint", None)),
        path=getattr(getattr(layer, "_embeddings", None), "path", None),
    )


def _variable(layer: Any) -> Any:
    """Return the framework's own variable, in which Keras 3 keeps the value of its one."""
    kept = getattr(layer, "_embeddings", layer.embeddings)
    return getattr(kept, "value", kept) if type(kept).__module__.startswith("keras") else kept
