"""The input pipeline as the user wrote it: every public tf.data call with its line and parameters.

Each call gets a `name=` (the user's is kept), which TensorFlow carries into the optimised pipeline
and back into the trace, so that fused and inserted iterators can be tied to source lines.
"""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any

from pipediag.capture.callsites import (
    AUTOGRAPH_FILE,
    KERAS,
    CallSite,
    is_pipediags,
    is_users,
    name_of,
    package_of,
)
from pipediag.capture.guard import Guard, caller_of_hook
from pipediag.capture.pipelines.calls import (
    MARK,
    InnerCall,
    as_public_call,
    cardinality_of,
    element_bytes_of,
    forget,
    name_given,
    parameters_of,
    remember,
    replaying,
    user_site,
)
from pipediag.capture.pipelines.functions import describe_function, users_side_effect
from pipediag.capture.process import EachThread, let_pass
from pipediag.capture.recorder import Recorder
from pipediag.session.recording import EARLIER, NAME_BEGINS, RecordedOperation

_TENSORFLOWS = "tensorflow/python/data/experimental/ops/"
_MODULES = frozenset(
    "batching counter enumerate_ops error_ops from_list grouping interleave_ops io "
    "pad_to_cardinality parsing_ops random_ops readers resampling scan_ops shuffle_ops snapshot "
    "take_while_ops unique".split()
)
"""Modules there that make pipelines; others copy to devices or serve datasets."""
_DATASETS = "tensorflow_datasets"
_VERSION = re.compile(r"_v[12]$")


@lru_cache(maxsize=4096)
def is_helpers(filename: str) -> bool:
    """Return True if functions in that file make pipelines for their callers."""
    path = PurePath(filename)
    if _TENSORFLOWS in filename:
        return path.stem in _MODULES
    if package_of(filename) == _DATASETS:
        return True
    of_keras = package_of(filename) in KERAS and path.parent.name == "utils"
    return of_keras and "dataset" in path.stem


def helper_called(frame: FrameType | None) -> str | None:
    """Return the helper that the user's code called for its dataset; None where it called none.

    `frame` is what makes the call of tf.data.
    """
    name = None
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users(file) or AUTOGRAPH_FILE in file:
            break
        if is_helpers(file):
            name = _called_as(frame.f_code) or name
        frame = frame.f_back
    return None if name is None else _VERSION.sub("", name)


def _called_as(code: CodeType) -> str | None:
    """Return a script's name for this; None for what TensorFlow Datasets calls within itself."""
    name = name_of(code)
    if package_of(code.co_filename) != _DATASETS:
        return name.partition(".")[0]
    # Decorators stand around its public functions, and reading is left to functions within others.
    if code.co_name.startswith(("_", "<")) or "<locals>" in name:
        return None
    is_method = code.co_varnames[:1] == ("self",)
    return code.co_name if is_method else f"tfds.{code.co_name}"


MANY = 2_000
"""Own choice: a script that makes its pipelines once has some dozens of operations, and one that
makes them for each epoch some hundreds; this many take a few megabytes."""
_RECENT = MANY // 4
"""The last ones stay, whatever became of them: what they made may be about to be read."""


def needed(operations: Sequence[RecordedOperation], wanted: Iterable[str]) -> set[str]:
    """Return the ids that are `wanted`, and those of all that their elements come through.

    These are what they read from, what their functions make, and in whose function they were made.
    """
    by_id = {operation.id: operation for operation in operations}
    inside: dict[str, list[str]] = defaultdict(list)
    for operation in operations:
        inside[operation.inside_function_of or ""].append(operation.id)
    found: set[str] = set()
    pending = list(wanted)
    while pending:
        op_id = pending.pop()
        known = by_id.get(op_id)
        if known is not None and op_id not in found:
            found.add(op_id)
            pending += [*known.parent_ids, *inside[op_id], known.inside_function_of or ""]
    return found


_METHODS = (
    "from_tensors from_tensor_slices from_generator range zip counter list_files load random "
    "sample_from_datasets choose_from_datasets concatenate rebatch prefetch repeat enumerate "
    "shuffle cache take skip shard batch "
    "padded_batch ragged_batch sparse_batch map flat_map ignore_errors interleave filter window "
    "unbatch with_options group_by_window bucket_by_sequence_length snapshot scan take_while "
    "unique rejection_resample"
).split()
_EARLIER = (
    "A dataset was made before Pipediag was there, so its operations are not known, and no change "
    "of it is tried: give a function that makes it, or make it within the block."
)


@dataclass(eq=False)
class _Call:
    operation: RecordedOperation
    kwargs: dict[str, Any]
    inside: list[RecordedOperation] = field(default_factory=list)
    """Operations that its function has made so far."""


@dataclass(eq=False)
class _Calls:
    """The calls that one thread is making, the innermost last."""

    open: list[_Call] = field(default_factory=list)


class PlanRecorder:
    """Wraps tf.data's public calls and remembers what they made."""

    def __init__(self, recorder: Recorder, *, came_late: bool = False) -> None:
        """Record what is made from now on; a program that ran before us has other datasets too."""
        self._recorder = recorder
        self._came_late = came_late
        self._operations = recorder.recording.operations
        self._calls = EachThread(_Calls, weakref.WeakSet())
        self._lock = threading.RLock()
        """Held by whoever takes operations away."""
        self._drop_at = MANY
        self._entries: tuple[Callable[..., Any], ...] = ()
        self._numbers = itertools.count(1)
        self._dataset_class: type = object
        self._marked: list[weakref.ref[Any]] = []

    def install(self, dataset_class: type, guard: Guard) -> None:
        self._dataset_class = dataset_class
        for method in _METHODS:
            own = dataset_class.__dict__.get(method)
            if isinstance(own, staticmethod):
                recorded = staticmethod(self._recorded(method, own.__func__, guard))
                guard.replace(dataset_class, method, recorded)
            elif own is not None:
                guard.replace(dataset_class, method, self._recorded(method, own, guard))

    def install_constructor(self, reader_class: type, kind: str, guard: Guard) -> None:
        original = reader_class.__dict__["__init__"]
        constructor = self._recorded(kind, original, guard, maker=reader_class)
        guard.replace(reader_class, "__init__", constructor)

    def operation_of(self, dataset: Any) -> str | None:
        """Return the id of the operation that made a dataset, within options and wrappers."""
        for _ in range(50):
            mark: str | None = dataset.__dict__.get(MARK)
            if mark is not None:
                return mark
            inputs = dataset._inputs()
            if len(inputs) != 1:
                return None
            dataset = inputs[0]
        return None

    def _new_operation(self, kind: str, site: CallSite | None) -> RecordedOperation:
        file, line = (site.file, site.line) if site else (None, None)
        operation = RecordedOperation(f"op{next(self._numbers)}", kind, "", file, line)
        self._operations.append(operation)
        return operation

    def enter_earlier(self, given: Iterable[Any]) -> None:
        """Record each dataset among these that was made before us, as a source."""
        for one in given if self._came_late else ():
            if isinstance(one, self._dataset_class) and self.operation_of(one) is None:
                self._recorder.attempt("reading a dataset", self._enter_source, one)

    def _enter_source(self, dataset: Any) -> None:
        operation = self._new_operation(EARLIER, None)
        operation.parent_ids = self._mark(dataset, operation.id)
        remember(dataset, operation, type(dataset), (), {}, ())
        self._recorder.note(_EARLIER)
        operation.cardinality = cardinality_of(dataset)
        operation.element_bytes = element_bytes_of(dataset)
        waiting = [dataset]
        while waiting:
            one = waiting.pop()
            waiting += one._inputs()
            if type(one).__name__ == "CacheDataset":
                # An analysis that ends too early removes what it has written of a cache in a file.
                cache = self._new_operation("cache", None)
                cache.parameters["filename"] = one._filename.numpy().decode()

    def forget_all(self) -> None:
        """Leave no mark on datasets of a program that goes on, and may be recorded once more."""
        while self._marked:
            dataset = self._marked.pop()()
            if dataset is not None:
                forget(dataset)

    def _recorded(
        self, kind: str, original: Callable[..., Any], guard: Guard, maker: type | None = None
    ) -> Callable[..., Any]:
        """Return a hook for a method, or for the constructor of `maker`, which fills `args[0]`."""
        if not self._entries:  # shared by all hooks: where one call can't be recorded, none can
            self._entries = tuple(
                guard.entry("recording the input pipeline", ours)
                for ours in (self._begins, self._failed, self._made)
            )
        begins, failed, made = self._entries

        def call(*args: Any, **kwargs: Any) -> Any:
            begun = begins(kind, original, args, kwargs)
            if begun is None:
                return original(*args, **kwargs)
            if not isinstance(begun, _Call):
                return begun(kind, original, args, kwargs)
            try:
                result = original(*args, **begun.kwargs)
            except BaseException:
                failed(begun)
                raise
            made(begun, original, args, result, maker)
            return result

        return guard.hook(original, call)

    def _begins(
        self, kind: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _Call | InnerCall | None:
        """Return the call to be recorded, or what makes it instead; None if it is no user's."""
        caller = caller_of_hook(__file__)
        file = caller.f_code.co_filename
        if _is_tensorflows_own(file) or is_pipediags(file):
            return None
        inner = replaying.get()
        if inner is not None:
            return inner
        self.enter_earlier((*args, *kwargs.values()))
        site, helper = user_site(), helper_called(caller)
        own_name, named = name_given(original, args, kwargs)
        self._drop_unneeded()
        outer = self._calls.here.open
        operation = self._new_operation(kind, site)
        new_name = f"{NAME_BEGINS}{operation.id.removeprefix('op')}" if named else ""
        operation.name = own_name or new_name
        operation.made_by_framework = site is None or site.by_framework or helper is not None
        operation.helper = helper
        operation.inside_function_of = outer[-1].operation.id if outer else None
        if named:
            kwargs = {**kwargs, "name": operation.name}
        for call in outer:
            call.inside.append(operation)
        outer.append(_Call(operation, kwargs))
        return outer[-1]

    def _drop_unneeded(self) -> None:
        """Drop operations that no loop reads and no living dataset stands for, once they are many.

        They are looked through each time that there are twice as many.
        """
        recording = self._recorder.recording
        if len(recording.operations) < self._drop_at:
            return
        with self._lock:
            operations = recording.operations[:]  # other threads add theirs meanwhile
            seen = len(self._marked)
            living = [(ref, one) for ref in self._marked[:seen] if (one := ref()) is not None]
            self._marked[:seen] = [ref for ref, _ in living]
            wanted = {one.__dict__[MARK] for _, one in living if MARK in one.__dict__}
            wanted.update(loop.root_op_id for loop in recording.loops if loop.root_op_id)
            wanted.update(operation.id for operation in operations[-_RECENT:])
            for calls in self._calls.all():
                wanted.update([call.operation.id for call in calls.open])
            kept = needed(operations, wanted)
            self._recorder.drop_operations({one.id for one in operations} - kept)
            self._drop_at = max(MANY, 2 * len(recording.operations))

    def _failed(self, call: _Call) -> None:
        self._calls.here.open.remove(call)
        with self._lock:
            self._recorder.drop_operations({one.id for one in (call.operation, *call.inside)})

    def _made(
        self,
        call: _Call,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        result: Any,
        maker: type | None,
    ) -> None:
        """Fill in what is known once the call has been made; never let that fail the script."""
        self._calls.here.open.remove(call)
        operation, dataset, function, kwargs = call.operation, result, original, call.kwargs
        if maker is not None:
            # A constructor is called again without the object that it filled.
            dataset, args = args[0], args[1:]
            function, args, kwargs = as_public_call(self._dataset_class, maker, args, kwargs)
        try:
            operation.parent_ids = self._mark(dataset, operation.id)
            operation.parameters = parameters_of(function, args, kwargs)
            operation.function = describe_function(dataset)
            if operation.kind == "from_generator" and operation.function is not None:
                generator = args[0] if args else kwargs["generator"]
                operation.function.side_effect = users_side_effect(generator)
            operation.cardinality = cardinality_of(dataset)
            operation.element_bytes = element_bytes_of(dataset)
        except Exception as error:
            let_pass(error)
            self._recorder.note(
                f"Pipediag could not describe the {operation.kind} at line {operation.line}: "
                f"{type(error).__name__}: {error}"
            )
        remember(dataset, operation, function, args, kwargs, tuple(call.inside))

    def _mark(self, dataset: Any, op_id: str) -> list[str]:
        """Claim the datasets that the call made, and return the operations they read from."""
        parents: list[str] = []
        pending = [dataset]
        while pending:
            current = pending.pop(0)
            known = current.__dict__.get(MARK)
            if known is None:
                # Not setattr: a dataset tracks its attributes as checkpointable state.
                current.__dict__[MARK] = op_id
                self._marked.append(weakref.ref(current))
                pending.extend(current._inputs())
            elif known != op_id and known not in parents:
                parents.append(known)
        return parents


def _is_tensorflows_own(filename: str) -> bool:
    """Return True if tf.data calls itself here, as `list_files` and the readers do."""
    if "tensorflow/python/" not in filename or "autograph" in filename:
        return False
    return not is_helpers(filename)
