"""What Keras's own frames on the stack say: which phase an iterator belongs to, and its model.

Reading frames at the moment an iterator is made needs no patch of Keras, and works alike for
Keras 3 on any backend and for tf_keras.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

from pipediag.capture.callsites import KERAS, is_pipediags, is_users, locals_of, package_of, unwrap
from pipediag.capture.frameworks.keras.input_layers import input_layers, unsplit
from pipediag.capture.frameworks.keras.made_at import compiled_at
from pipediag.capture.runtime import TrainersPhase
from pipediag.session.recorded_loops import Callback, KerasUse
from pipediag.vocabulary import LoopRole, Scalar

_ARGUMENTS = (
    "momentum",
    "weight_decay",
    "use_ema",
    "global_clipnorm",
    "gradient_accumulation_steps",
)


def settings_of(optimizer: Any) -> dict[str, Scalar]:
    """Those that are set, of the optimizer itself where one that scales the loss is around it.

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
    """Of all the variables that it lists under this name; None where it can't tell yet."""
    try:
        listed = getattr(owner, name)
        variables = listed() if callable(listed) else listed
        return sum(int(math.prod(one.shape)) * _item_bytes(one.dtype) for one in variables)
    except Exception:  # a model that is not built may raise anything
        return None


def _item_bytes(dtype: Any) -> int:
    """Keras 3 names its types, where TensorFlow has a type of its own for them."""
    size = getattr(dtype, "size", None)
    if size is not None:
        return int(size)
    name = str(dtype)
    if name == "bool" or name.startswith("float8"):
        return 1
    return int("".join(one for one in name if one.isdigit())) // 8


_PHASES: dict[str, LoopRole] = {
    "fit": "training",
    "evaluate": "evaluate",
    "predict": "predict",
    "adapt": "adapt",
}
_ONE_BATCH = "single_batch_iterator"
_DECIDING = frozenset({"EarlyStopping", "ReduceLROnPlateau"})
_BATCH_HOOKS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")


def phase_of(frames: Iterable[FrameType]) -> TrainersPhase | None:
    """The Keras phase that the frames (innermost first) run in, or None outside of Keras."""
    found: TrainersPhase | None = None
    for frame in frames:
        name = frame.f_code.co_name
        if name not in _PHASES or package_of(frame.f_code.co_filename) not in KERAS:
            continue
        if name == "fit" and found is not None and found.role == "evaluate":
            return TrainersPhase("validation", "evaluate inside fit", found.frame)
        if found is None:
            found = TrainersPhase(_PHASES[name], name, frame)
    return found


def passes_a_batch_on(frames: Iterable[FrameType]) -> bool:
    """Whether `train_on_batch`, or one of its kind, of Keras 2 makes an iterator of its batch."""
    for frame in frames:
        file = frame.f_code.co_filename
        if frame.f_code.co_name == _ONE_BATCH and package_of(file) in KERAS:
            return True
        if is_users(file):
            return False
    return False


def fed_model(frames: Iterable[FrameType]) -> Any:
    """The model whose `train_on_batch` the frames (innermost first) run in; None outside of one."""
    for frame in frames:
        code = frame.f_code
        if code.co_name == "train_on_batch" and package_of(code.co_filename) in KERAS:
            return locals_of(frame)["self"]
    return None


def describe_fit(frame: FrameType) -> KerasUse:
    """The model and the arguments of a running `fit`."""
    values = locals_of(frame)
    model = values["self"]
    callbacks = _user_callbacks(values.get("callbacks"))
    adapter = _adapter(frame)
    source = values.get("x")
    file, line = _defined_at(type(source))
    dataset = getattr(adapter, "py_dataset", None)
    prepared = input_layers(model)
    compile_file, compile_line = compiled_at(model)
    return KerasUse(
        model=type(model).__name__,
        optimizer=_class_name(getattr(model, "optimizer", None)),
        loss=_loss_name(getattr(model, "loss", None)),
        run_eagerly=bool(getattr(model, "run_eagerly", False)),
        jit_compile=getattr(model, "jit_compile", None),
        steps_per_execution=batches_per_call(frame),
        epochs=_number(values.get("epochs")),
        steps_per_epoch=_steps_per_epoch(frame),
        data_adapter=_class_name(adapter),
        source=_class_name(source),
        source_file=file,
        source_line=line,
        workers=_number(getattr(dataset, "workers", None)),
        use_multiprocessing=getattr(dataset, "use_multiprocessing", None),
        callbacks=[describe_callback(callback) for callback in callbacks],
        deciding_callbacks=_deciding(values.get("callbacks")),
        parameter_count=_parameter_count(model),
        variable_bytes=variable_bytes(model, "variables"),
        trainable_bytes=variable_bytes(model, "trainable_variables"),
        optimizer_bytes=variable_bytes(getattr(model, "optimizer", None), "variables"),
        optimizer_settings=settings_of(getattr(model, "optimizer", None)),
        input_layers=prepared,
        legacy=any(base.__module__.startswith("tf_keras.") for base in type(model).__mro__),
        unsplit=unsplit(model) if prepared else None,
        compile_file=compile_file,
        compile_line=compile_line,
    )


def callback_list(frame: FrameType) -> Any:
    """Keras's own list of the callbacks of a running `fit`, once it has made one; None before."""
    callbacks = locals_of(frame).get("callbacks")
    return callbacks if hasattr(callbacks, "callbacks") else None


def planned_steps(frame: FrameType) -> int | None:
    """Steps that a running `fit` has been asked for; None where Keras does not know them yet."""
    values = locals_of(frame)
    epochs, steps = _number(values.get("epochs")), _steps_per_epoch(frame)
    if epochs is None or steps is None:
        return None
    return max(0, epochs - (_number(values.get("initial_epoch")) or 0)) * steps


def _steps_per_epoch(frame: FrameType) -> int | None:
    walker = data_walker(frame)
    return (
        _number(locals_of(frame).get("steps_per_epoch"))
        or _number(getattr(walker, "num_batches", None))
        or _number(getattr(walker, "inferred_steps", None))
    )


def batches_per_call(frame: FrameType) -> int:
    """`steps_per_execution` of the model whose `fit` is running."""
    model = locals_of(frame).get("self")
    steps = getattr(model, "steps_per_execution", None)
    if steps is None:
        # Keras 2.14 has no property for it.
        steps = getattr(model, "_steps_per_execution", None)
    return _number(steps) or 1


def batch_size_of(frame: FrameType) -> int | None:
    """Rows of a batch as the data adapter of a running `fit` knows them."""
    adapter = _adapter(frame)
    size = getattr(adapter, "batch_size", None)
    size = _number(size() if callable(size) else size)
    if size is not None:
        return size
    size = _number(getattr(getattr(adapter, "py_dataset", None), "batch_size", None))
    return size or _rows(getattr(adapter, "_first_batches", None))


def _rows(batches: Any) -> int | None:
    """Leading dimension of the first array in nested sequences and dicts of arrays."""
    while batches is not None and not hasattr(batches, "shape"):
        if isinstance(batches, dict):
            batches = list(batches.values())
        batches = batches[0] if isinstance(batches, list | tuple) and batches else None
    return _number(batches.shape[0]) if batches is not None and len(batches.shape) else None


def data_walker(frame: FrameType) -> Any:
    """What walks over the data of a running `fit`, and of no other: an EpochIterator, or tf_keras's
    DataHandler."""
    values = locals_of(frame)
    return values.get("epoch_iterator") or values.get("data_handler")


def _adapter(frame: FrameType) -> Any:
    walker = data_walker(frame)
    return getattr(walker, "data_adapter", None) or getattr(walker, "_adapter", None)


def _user_callbacks(callbacks: Any) -> list[Any]:
    files = [(each, _file_of(type(each)) or "") for each in _listed(callbacks)]
    return [
        each for each, file in files if package_of(file) not in KERAS and not is_pipediags(file)
    ]


def _deciding(callbacks: Any) -> list[str]:
    """Also where the user derives from them: what they watch stays."""
    named = [base.__name__ for each in _listed(callbacks) for base in type(each).__mro__]
    return [name for name in dict.fromkeys(named) if name in _DECIDING]


def _listed(callbacks: Any) -> list[Any]:
    listed = getattr(callbacks, "callbacks", callbacks) or []
    return list(listed) if isinstance(listed, list | tuple) else [listed]


def describe_callback(callback: Any) -> Callback:
    """Its class, where that is defined, and what it does at batches; at the first of these hooks
    where there is one."""
    own = type(callback)
    file, line = _defined_at(own)
    hooks = [
        name for name in _BATCH_HOOKS if any(name in base.__dict__ for base in _users_bases(own))
    ]
    for name in hooks:
        code = getattr(unwrap(getattr(own, name)), "__code__", None)
        if code is not None:
            file, line = code.co_filename, code.co_firstlineno
            break
    return Callback(name=own.__name__, file=file, line=line, batch_hooks=hooks)


def _users_bases(own: type) -> list[type]:
    return [b for b in own.__mro__ if package_of(_file_of(b) or "") not in KERAS]


def _defined_at(own: type) -> tuple[str | None, int | None]:
    """Where a class of the user is defined: the first line of one of its methods."""
    for member in vars(own).values():
        code = getattr(unwrap(member), "__code__", None) if callable(member) else None
        if code is not None and package_of(code.co_filename) is None:
            return code.co_filename, code.co_firstlineno
    return None, None


def _file_of(own: type) -> str | None:
    return getattr(sys.modules.get(own.__module__), "__file__", None)


def _class_name(value: Any) -> str | None:
    return None if value is None else type(value).__name__


def _loss_name(loss: Any) -> str | None:
    return (
        loss
        if loss is None or isinstance(loss, str)
        else getattr(loss, "name", type(loss).__name__)
    )


def _number(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def _parameter_count(model: Any) -> int | None:
    try:
        return int(model.count_params())
    except Exception:  # an unbuilt or subclassed model has no count yet, and may raise anything
        return None
