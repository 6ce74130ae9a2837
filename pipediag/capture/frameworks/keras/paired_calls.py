"""Calls of a Keras model that are timed, each with another way to make it."""

from __future__ import annotations

import ast
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.callsites import CallSite, call_site, frames, locals_of
from pipediag.capture.guard import Guard
from pipediag.capture.loops.registry import parsed
from pipediag.capture.pipelines.functions import side_effect, value_of
from pipediag.capture.process import let_pass
from pipediag.capture.timeline import Timeline
from pipediag.capture.watching.step_clock import StepClock
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Prediction

_SEEN = 5
"""Calls of one line before it is timed: what is called less often is not worth it."""
_PAIRS = 8
_MOST_BYTES = 64 * 1024 * 1024
"""The size of the data of one call, all of which goes through the model at once."""
_ARGUMENTS = ("x", "batch_size", "verbose", "steps", "callbacks")
_RELATIVE, _ABSOLUTE = 1e-4, 1e-5
"""Tolerances of results: batches of other sizes are added up in another order."""


@dataclass
class PairedCalls:
    """Calls by the line that makes them, some of which are followed by another call, timed too.

    Of `predict` that is `predict_on_batch`. Of a model that is called eagerly, outside of the steps
    that train, it is the model as a `tf.function`.
    """

    _predictions: list[Prediction]
    _timeline: Timeline
    _steps: StepClock
    _found: dict[tuple[str, str, int], Prediction] = field(default_factory=dict)
    _compiled: dict[tuple[str, int], Any] = field(default_factory=dict)
    _nested: threading.local = field(default_factory=threading.local)
    """`depth` of calls of models, one within the other."""

    def predicted(
        self, took_ns: int, result: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Time `predict_on_batch` after the script's call of `predict`."""
        given = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
        data = given.get("x")

        def other(found: Prediction, _: CallSite) -> tuple[Any, int] | str:
            arrays = list(_leaves(data))
            others = given.keys() - {*_ARGUMENTS} or given.get("steps") is not None
            if others or given.get("callbacks"):
                return "`predict` is called with arguments that `predict_on_batch` lacks."
            if not arrays or not all(map(_is_array, arrays)):
                return "The data are no arrays."
            if sum(getattr(each, "nbytes", 0) for each in arrays) > _MOST_BYTES:
                return "The data are too many for one batch."
            if not found.other_ms:
                model.predict_on_batch(data)  # traces
            return _timed(lambda: model.predict_on_batch(data))

        self._pair("`predict_on_batch`", data, (result, took_ns), other)

    def install(self, model_class: type, guard: Guard) -> None:
        """Time calls of models, which layers of that class are not."""
        called = guard.entry("timing a model as a `tf.function`", self._called)
        original = model_class.__call__

        def call(model: Any, *args: Any, **kwargs: Any) -> Any:
            depth = getattr(self._nested, "depth", 0)
            if depth or not _runs_eagerly():
                return original(model, *args, **kwargs)
            self._nested.depth, began_ns = depth + 1, time.perf_counter_ns()
            try:
                result = original(model, *args, **kwargs)
                took_ns = time.perf_counter_ns() - began_ns
                called((result, took_ns), model, args, kwargs)
            finally:
                self._nested.depth = depth
            return result

        guard.replace(model_class, "__call__", guard.hook(original, call))

    def _called(
        self, own: tuple[Any, int], model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        def other(found: Prediction, site: CallSite) -> tuple[Any, int] | str:
            if not found.own_ms:
                found.model = _named(model, site)
            if found.model is None:
                return "The line does not name the model that it calls, or names several."
            if kwargs.get("training") or any(one is True for one in args):
                return "The model is called as in training."
            if any(getattr(each, "_losses", None) for each in model._flatten_layers()):
                # They would be tensors of the graph where the script reads them after its own call.
                return "Layers of the model add losses in each call."
            changed = side_effect(model.call)
            if changed is not None:
                return f"Its Python would run only while it is traced, and {changed}."
            place = (site.file, site.line)
            if place not in self._compiled:
                function = sys.modules["tensorflow"].function
                self._compiled[place] = function(_call, reduce_retracing=True)
            compiled = self._compiled[place]
            traces = compiled.experimental_get_tracing_count()
            timed = _timed(lambda: compiled(model, *args, **kwargs))
            if compiled.experimental_get_tracing_count() != traces:
                timed = _timed(lambda: compiled(model, *args, **kwargs))
            return timed

        last = self._steps.last_here
        if last is not None and (not last.loop.trains or last.loop.interruption is not None):
            evaluates = None if last.loop.trains else last.loop.record
            self._pair("The model as a `tf.function`", args, own, other, evaluates)

    def _pair(
        self,
        what: str,
        data: Any,
        own: tuple[Any, int],
        other: Callable[[Prediction, CallSite], tuple[Any, int] | str],
        loop: RecordedLoop | None = None,
    ) -> None:
        """Let `other` make that call, if the line calls often, and keep the times of both.

        It returns the result and the time in ns, as `own` has them, or why it can't be made.
        """
        site = call_site()
        if site is None or site.by_framework:
            return
        place = (what, site.file, site.line)
        found = self._found.get(place)
        if found is None:
            loop_id = loop.id if loop is not None else None
            found = self._found[place] = Prediction(site.file, site.line, 0, loop_id=loop_id)
        found.calls += 1
        if found.lacking or not _SEEN < found.calls <= _SEEN + _PAIRS:
            return
        if found.calls == _SEEN + 1:
            self._predictions.append(found)
        began_ns = time.monotonic_ns()
        try:
            made = other(found, site)
            found.lacking = made if isinstance(made, str) else _kept(what, found, data, own, made)
        except Exception as error:
            let_pass(error)
            found.lacking = f"{what} raised {type(error).__name__}."
        finally:
            ended_ns = time.monotonic_ns()
            self._timeline.passed("aside", began_ns, ended_ns)
            if loop is not None and loop.last_ns is not None:
                # The step that evaluates did not take this time.
                loop.last_ns += ended_ns - began_ns
                loop.set_aside_ns += ended_ns - began_ns


def _kept(
    what: str, found: Prediction, data: Any, own: tuple[Any, int], other: tuple[Any, int]
) -> str | None:
    """Keep the times of a pair; return how the results differ, if so."""
    results, others = list(_leaves(own[0])), list(_leaves(other[0]))
    if len(results) != len(others) or not all(map(_close, results, others)):
        return f"{what} gives other values."
    rows = (each.shape[0] for each in _leaves(data) if _is_array(each))
    found.rows = int(next(rows, None) or 0)
    found.own_ms.append(own[1] / 1e6)
    found.other_ms.append(other[1] / 1e6)
    return None


def _timed(call: Callable[[], Any]) -> tuple[Any, int]:
    start_ns = time.perf_counter_ns()
    result = call()
    return result, time.perf_counter_ns() - start_ns


def _leaves(data: Any) -> Iterator[Any]:
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list | tuple):
        for each in data:
            yield from _leaves(each)
    else:
        yield data


def _is_array(value: Any) -> bool:
    """Return True for a NumPy array or a tensor: a dataset and a generator have no shape."""
    shape = getattr(value, "shape", None)
    return shape is not None and len(shape) > 0 and hasattr(value, "dtype")


def _close(one: Any, other: Any) -> bool:
    np = sys.modules["numpy"]
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    return bool(np.allclose(one, other, _RELATIVE, _ABSOLUTE))


def _call(model: Any, *args: Any, **kwargs: Any) -> Any:
    return model(*args, **kwargs)


def _runs_eagerly() -> bool:
    """Return True outside of functions that are traced and of tapes that record."""
    context = sys.modules.get("tensorflow.python.eager.context")
    record = sys.modules.get("tensorflow.python.eager.record")
    if context is None or record is None or not context.executing_eagerly():
        return False
    return not record.could_possibly_record()


def _named(model: Any, site: CallSite) -> str | None:
    """Return the code by which the line of a call names the model; None in doubt."""
    place = (site.file, site.line)
    frame = next((one for one in frames() if (one.f_code.co_filename, one.f_lineno) == place), None)
    if frame is None:
        return None
    names = {**frame.f_globals, **locals_of(frame)}
    tree = parsed(site.file)
    if tree is None:
        return None
    calls = (one for one in ast.walk(tree) if isinstance(one, ast.Call))
    there = [one.func for one in calls if one.lineno <= site.line <= (one.end_lineno or 0)]
    found = [ast.unparse(one) for one in there if _value(one, names) is model]
    return found[0] if len(found) == 1 else None


def _value(written: ast.expr, names: dict[str, Any]) -> Any:
    """Return the value of a name or an attribute; a property counts where Keras defines it."""
    value = value_of(written, names)
    if not isinstance(written, ast.Attribute) or not isinstance(value, property):
        return value
    of_keras = getattr(value.fget, "__module__", "").split(".")[0] in ("keras", "tf_keras")
    return getattr(value_of(written.value, names), written.attr) if of_keras else value
