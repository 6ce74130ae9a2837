"""Calls of a Keras model that are timed, each with another way to make it."""

from __future__ import annotations

import ast
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from dis import get_instructions
from functools import lru_cache, partial
from inspect import CO_VARARGS, CO_VARKEYWORDS, getattr_static
from types import CodeType, FrameType
from typing import Any

from pipediag.capture.callsites import (
    CallSite,
    call_site,
    frames,
    is_in_a_loop,
    is_users,
    locals_of,
    parsed,
    unwrap,
)
from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Stage
from pipediag.capture.pipelines.functions import of_any_rows, why_not_traced, why_not_twice
from pipediag.capture.pipelines.values import made_again, value_of
from pipediag.capture.process import let_pass, random_state_kept
from pipediag.capture.timeline import Timeline
from pipediag.capture.watching.step_clock import StepClock
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Prediction

_SEEN = 5
"""Calls of one line before it is timed: what is called less often is not worth it."""
_PAIRS = 8
_MOST_BYTES = 64 * 1024 * 1024
"""The size of the data of one call, all of which goes through the model at once."""
_MOST_ROWS, _MOST_BATCHES = 4_096, 4
"""Rows of such data, and batches of the script's own size: what layers make of a row may be larger
than the row. Own choice."""
_USUAL_BATCH = 32
"""Rows of a batch where the script gives `predict` no size."""
_TAKES_MORE = CO_VARARGS | CO_VARKEYWORDS
_MOST_TRACES = 3
"""Traces of what one line calls: for batches of any number of rows, and for shapes of their own."""
_CHANGE = (
    "Assign", "ResourceApply", "ResourceScatter", "Random", "StatefulRandom", "StatelessRandom",
)  # fmt: skip
"""Begins of names of operations that change what the script has, or draw other numbers."""
_OF_METRICS = ("update_state", "result")
_ARGUMENTS = ("x", "batch_size", "verbose", "steps", "callbacks")
_RELATIVE, _ABSOLUTE = 1e-4, 1e-5
"""Tolerances of results: batches of other sizes are added up in another order."""

_Place = tuple[tuple[CodeType, int], ...]
"""Code and instruction of the methods of a model that call one another, the innermost first."""


@dataclass
class PairedCalls:
    """Calls by the line that makes them, some of which are followed by another call, timed too.

    Of `predict` that is `predict_on_batch`. Of a model that is called eagerly outside of the steps
    that train, or a method of its that calls layers, it is the same as a `tf.function`; so it is of
    a metric that is updated or read, also between the steps that train.
    """

    _predictions: list[Prediction]
    _timeline: Timeline
    _steps: StepClock
    _found: dict[tuple[str, str, int], Prediction] = field(default_factory=dict)
    _compiled: dict[tuple[str, int, str | None], Any] = field(default_factory=dict)
    _first_layers: dict[CodeType, _Place] = field(default_factory=dict)
    """Places at which methods call their first layer."""
    _objects: dict[tuple[str, int, str | None], set[int]] = field(default_factory=dict)
    """Models and metrics that each line calls, by their ids: each of them is traced."""
    _relaxed: dict[tuple[str, int], int] = field(default_factory=dict)
    """Traces of `predict_on_batch` by the line that calls `predict`, beside the first one."""
    _nested: threading.local = field(default_factory=threading.local)
    """`inside` is True while a thread makes a call that is timed, with others within it."""

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
            most = max(_MOST_ROWS, _MOST_BATCHES * (given.get("batch_size") or _USUAL_BATCH))
            size = sum(getattr(each, "nbytes", 0) for each in arrays)
            if size > _MOST_BYTES or max(each.shape[0] for each in arrays) > most:
                return "The data are too many for one batch."
            made = partial(_timed, partial(model.predict_on_batch, data))
            if not found.other_ms:
                made()  # traces, as the script's own first call does
            traces = _traces_of_predict(model)
            timed = made()
            if _traces_of_predict(model) == traces:
                return timed
            # For other rows than before: the first of these traces makes it right for any number.
            place = (found.file, found.line)
            self._relaxed[place] = self._relaxed.get(place, 0) + 1
            if self._relaxed[place] > _MOST_TRACES:
                return "Its arguments are others in each call, and each would be traced anew."
            again = made()
            found.traced_ms += (timed[1] - again[1]) / 1e6
            return again

        self._pair("`predict_on_batch`", data, lambda: (result, took_ns), other)

    def install(self, model_class: type, guard: Guard) -> None:
        """Time calls of models, and of methods of theirs that call layers."""
        owner = next(one for one in model_class.__mro__ if "__call__" in vars(one))
        called = guard.entry(
            "timing a model as a `tf.function`", partial(self._layer_called, model_class)
        )
        wanted = guard.entry("seeing the end of a loop", self._evaluates)
        self._hook(owner, "__call__", guard, called, wanted)

    def install_metrics(self, metric_class: type, guard: Guard) -> None:
        """Time the methods of Keras' own metrics, whose classes are hooked as metrics are made."""
        what, hooked = "timing a metric as a `tf.function`", set[tuple[type, str]]()

        def made(metric: Any, *_: Any, **__: Any) -> None:
            for method in _OF_METRICS:
                owner = next(one for one in type(metric).__mro__ if method in vars(one))
                if (owner, method) not in hooked and _is_of_keras(owner):
                    hooked.add((owner, method))
                    called = guard.entry(what, partial(self._metric_called, method))
                    self._hook(owner, method, guard, called)

        guard.tell_before(metric_class, "__init__", what, made)

    def _hook(
        self,
        owner: type,
        method: str,
        guard: Guard,
        called: Callable[..., None],
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Have `called` told of eager calls of a method, but for those within another one."""
        original, nested = vars(owner)[method], self._nested

        def call(thing: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(nested, "inside", False) or not _runs_eagerly() or not wanted():
                return original(thing, *args, **kwargs)
            nested.inside = True
            try:
                result = original(thing, *args, **kwargs)
                called(thing, args, kwargs)
            finally:
                nested.inside = False
            return result

        guard.replace(owner, method, guard.hook(original, call))

    def _metric_called(
        self, method: str, metric: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Time a call once more as it is and as a `tf.function`; the first one's values stay."""
        last = self._steps.last_here
        # A step that is eager as a whole is timed as such.
        is_eager = last is not None and last.loop.trains and not last.loop.record.step_functions
        if last is None or is_eager:
            return
        again = partial(_with_values, metric)
        own = partial(again, partial(getattr(metric, method), *args, **kwargs))
        self._compiled_too(call_site(), own, metric, method, args, kwargs, again)

    def _evaluates(self) -> bool:
        """Return True in a loop that does not train, and where one that does is interrupted."""
        self._steps.leave_fed_loop()
        last = self._steps.last_here
        return last is not None and (not last.loop.trains or last.loop.interruption is not None)

    def _layer_called(
        self, model_class: type, layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Time the method of a model that has called the layer, or else the layer if it is one."""
        if not self._in_a_method(model_class) and isinstance(layer, model_class):
            model: Any = layer
            own = partial(_timed, partial(model, *args, **kwargs))
            self._compiled_too(call_site(), own, model, None, args, kwargs)

    def _in_a_method(self, model_class: type) -> bool:
        """Return True if a method of a model calls a layer now, and time that method where the
        layer is the first that it calls: once more as it is, and as a `tf.function`."""
        found = _outermost_method(model_class)
        if found is None:
            return False
        frame, model, here = found
        code = frame.f_code
        site = call_site(frames(frame.f_back))
        first = self._first_layers.setdefault(code, here) == here
        if not first or any(is_in_a_loop(*one) for one in here) or site is None:
            return True
        values, taken = locals_of(frame), code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[1:taken]
        given = {name: values[name] for name in names if name in values}
        as_given = len(given) == len(names) and not _sets(code, names, frame.f_lasti)
        if not as_given or code.co_flags & _TAKES_MORE:
            return True
        method = getattr(model, code.co_name)
        own = partial(_timed, partial(method, **given))
        timed = self._compiled_too(site, own, model, code.co_name, (), given)
        # What a method does with the values of tensors is no part of a graph; its layers may be.
        return timed is None or not timed.lacking

    def _compiled_too(
        self,
        site: CallSite | None,
        own: Callable[[], tuple[Any, int]],
        model: Any,
        method: str | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        of_metric: Callable[[Callable[[], Any]], tuple[Any, int]] | None = None,
    ) -> Prediction | None:
        """Time a model, a method of its, or that of a metric, which `of_metric` times, as a
        `tf.function`, with the same arguments; return what is known of the line."""
        what = f"{_in_words(model, method, site)} as a `tf.function`"

        def other(found: Prediction, site: CallSite) -> tuple[Any, int] | str:
            if not found.own_ms:
                found.model, found.made_again = _named(model, method, site)
                found.method = method
            if found.model is None:
                return "The line does not name what it calls, or names several."
            lacking = _unlike_a_test(model, args, kwargs) if of_metric is None else None
            if lacking is not None:
                return lacking
            place = (site.file, site.line, what)
            compiled = self._compiled.get(place)
            if compiled is None:
                compiled = sys.modules["tensorflow"].function(_call, reduce_retracing=True)
                began_ns = time.monotonic_ns()
                python = getattr(model, method or "call")
                lacking = why_not_traced(python) if of_metric is None else None
                if lacking is None:
                    graph = _traced(compiled, model, method, args, kwargs)
                    lacking = why_not_twice(graph, *_CHANGE) if of_metric is None else None
                if lacking is not None:
                    return lacking
            made = partial(of_metric or _timed, partial(compiled, model, method, *args, **kwargs))
            if place not in self._compiled:
                made()  # the first call also optimises the graph
                found.traced_ms = (time.monotonic_ns() - began_ns) / 1e6
                self._compiled[place] = compiled
            traces = compiled.experimental_get_tracing_count()
            timed = made()
            objects = self._objects.setdefault(place, set())
            objects.add(id(model))
            found.objects = len(objects)
            most = _MOST_TRACES * len(objects)
            if compiled.experimental_get_tracing_count() > max(traces, most):
                return "Its arguments are others in each call, and each would be traced anew."
            return timed if traces == compiled.experimental_get_tracing_count() else made()

        last = self._steps.last_here
        # What is called between the steps of a training is a part of them, unless these are over.
        between = of_metric is not None and last is not None and last.loop.interruption is None
        of_loop = last is not None and (between or not last.loop.trains)
        loop = last.loop.record if last is not None and of_loop else None
        return self._pair(what, (*args, *kwargs.values()), own, other, loop, site)

    def _pair(
        self,
        what: str,
        data: Any,
        own: Callable[[], tuple[Any, int]],
        other: Callable[[Prediction, CallSite], tuple[Any, int] | str],
        loop: RecordedLoop | None = None,
        site: CallSite | None = None,
    ) -> Prediction | None:
        """Let `other` make that call, if the line calls often, and keep the times of both.

        It returns the result and the time in ns, as `own` does, or why it can't be made.
        """
        site, last = site or call_site(), self._steps.last_here
        if site is None or site.by_framework:
            return None
        place, loop_id = (what, site.file, site.line), loop.id if loop is not None else None
        found = self._found.get(place)
        if found is None:
            found = self._found[place] = Prediction(
                site.file,
                site.line,
                0,
                loop_id=loop_id,
                began_ns=time.monotonic_ns(),
                after_training=loop is None and not self._timeline.in_a_call,
            )
        of_trial = last is not None and last.loop.trains and last.stage is not Stage.OWN
        if of_trial or found.loop_id != loop_id:
            return None  # no step of the loop of which it is to be told what it takes
        found.calls += 1
        if found.lacking or not _SEEN < found.calls <= _SEEN + _PAIRS:
            return found
        if found.calls == _SEEN + 1:
            self._predictions.append(found)
        self._time(what, found, data, partial(other, found, site), own, loop)
        return found

    def _time(
        self,
        what: str,
        found: Prediction,
        data: Any,
        other: Callable[[], tuple[Any, int] | str],
        own: Callable[[], tuple[Any, int]],
        loop: RecordedLoop | None,
    ) -> None:
        """Make a pair of calls, whose time is none of the step's."""
        began_ns = time.monotonic_ns()
        try:
            made = other()
            if isinstance(made, str):
                found.lacking = made
            else:
                found.lacking = _kept(what, found, data, own(), made)
        except Exception as error:
            let_pass(error)
            found.lacking = f"{what} raised {type(error).__name__}."
        finally:
            ended_ns = time.monotonic_ns()
            last = self._steps.last_here
            trained = last.loop if last is not None and last.loop.trains else None
            # A `predict` may stand in a step, or between two epochs.
            if trained is not None and (loop is not None or trained.interruption is None):
                self._steps.interrupted_by_us(began_ns, ended_ns)
            else:
                self._timeline.passed("aside", began_ns, ended_ns)
                if loop is not None and loop.last_ns is not None:
                    # The step that evaluates did not take this time.
                    loop.last_ns += ended_ns - began_ns
                    loop.set_aside_ns += ended_ns - began_ns


def see_ends_of_loops(model_class: type, guard: Guard, steps: StepClock) -> None:
    """Have the steps end that Python fed once layers are called behind their loop."""
    owner = next(one for one in model_class.__mro__ if "__call__" in vars(one))

    def called(*_: Any, **__: Any) -> None:
        if _runs_eagerly():
            steps.leave_fed_loop()

    guard.tell_before(owner, "__call__", "seeing the end of a loop", called)


def _traces_of_predict(model: Any) -> int:
    function = getattr(model, "predict_function", None)
    return getattr(function, "experimental_get_tracing_count", int)()


def _kept(
    what: str, found: Prediction, data: Any, own: tuple[Any, int], other: tuple[Any, int]
) -> str | None:
    """Keep the times of a pair; return how the results differ, if so."""
    if not _alike(own[0], other[0]):
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


def _alike(one: Any, other: Any) -> bool:
    """Return True if results have equal keys and close values, and numbers of Python stay such."""
    if isinstance(one, dict):
        same = isinstance(other, dict) and one.keys() == other.keys()
        return same and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        same = type(one) is type(other) and len(one) == len(other)
        return same and all(map(_alike, one, other))
    return hasattr(one, "dtype") == hasattr(other, "dtype") and _close(one, other)


def _close(one: Any, other: Any) -> bool:
    np = sys.modules["numpy"]
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    return bool(np.allclose(one, other, _RELATIVE, _ABSOLUTE))


def _call(model: Any, method: str | None, *args: Any, **kwargs: Any) -> Any:
    called = model if method is None else getattr(model, method)
    return called(*args, **kwargs)


def _with_values(metric: Any, call: Callable[[], Any]) -> tuple[Any, int]:
    """Return a call's result with the metric's values after it, and its time; put back those from
    before it."""
    np = sys.modules["numpy"]
    before = [np.array(one) for one in metric.variables]
    try:
        result, took_ns = _timed(call)
        return [result, *(np.array(one) for one in metric.variables)], took_ns
    finally:
        for variable, value in zip(metric.variables, before, strict=True):
            variable.assign(value)


def _unlike_a_test(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    if kwargs.get("training") or any(one is True for one in args):
        return "The model is called as in training."
    if any(getattr(each, "_losses", None) for each in model._flatten_layers()):
        # They would be tensors of the graph where the script reads them after its own call.
        return "Layers of the model add losses in each call."
    return None


def _traced(
    compiled: Any, model: Any, method: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the graph of a call for batches of any number of rows; nothing of it is run."""
    specs, named = of_any_rows((args, kwargs))
    with random_state_kept():
        return compiled.get_concrete_function(model, method, *specs, **named).graph


def _outermost_method(model_class: type) -> tuple[FrameType, Any, _Place] | None:
    """Return the method of a model that calls a layer now, with the model, and the place of that
    call: of methods that call one another the outermost; None within `call`, which Keras calls."""
    found, places = None, list[tuple[CodeType, int]]()
    for frame in frames():
        code = frame.f_code
        if not is_users(code.co_filename):
            if found is not None:
                break
            continue
        if not code.co_argcount or code.co_name.startswith("<"):
            break
        owner = locals_of(frame).get(code.co_varnames[0])
        if not isinstance(owner, model_class) or (found is not None and owner is not found[1]):
            break
        method = getattr_static(owner, code.co_name, None)
        if getattr(unwrap(method), "__code__", None) is not code:
            break
        places.append((code, frame.f_lasti))
        found = frame, owner
    return None if found is None else (*found, tuple(places))


def _sets(code: CodeType, names: Collection[str], before: int) -> bool:
    """Return True if code may have set one of these variables before an instruction."""
    return any(
        one.opname.startswith("STORE_") and one.argval in names and one.offset < before
        for one in get_instructions(code)
    )


def _runs_eagerly() -> bool:
    """Return True outside of functions that are traced and of tapes that record."""
    context = sys.modules.get("tensorflow.python.eager.context")
    record = sys.modules.get("tensorflow.python.eager.record")
    if context is None or record is None or not context.executing_eagerly():
        return False
    return not record.could_possibly_record()


def _in_words(model: Any, method: str | None, site: CallSite | None) -> str:
    """Return what a line calls, with the name of the model where the line may call others, too."""
    several = site is not None and len(_written(site.file, site.line, method)) > 1
    named = _named(model, method, site)[0] if site is not None and several else None
    called = ".".join(filter(None, (named, method)))
    return f"`{called}`" if called else "The model"


def _named(model: Any, method: str | None, site: CallSite) -> tuple[str | None, bool]:
    """Return the code by which the line of a call names the model, or None in doubt, and True if
    that names another object in a later epoch."""
    place = (site.file, site.line)
    frame = next((one for one in frames() if (one.f_code.co_filename, one.f_lineno) == place), None)
    if frame is None:
        return None, False
    names, there = {**frame.f_globals, **locals_of(frame)}, _written(*place, method)
    found = [one for one in there if _value(one, names) is model]
    if len(found) != 1:
        return None, False
    return ast.unparse(found[0]), made_again(frame, found[0])


@lru_cache(maxsize=256)
def _written(file: str, line: int, method: str | None) -> list[ast.expr]:
    """Return the code of what a line calls, or of what it calls the method of."""
    tree = parsed(file)
    calls = (one for one in ast.walk(tree) if isinstance(one, ast.Call)) if tree else ()
    there = [one.func for one in calls if one.lineno <= line <= (one.end_lineno or 0)]
    if method is None:
        return there
    return [one.value for one in there if isinstance(one, ast.Attribute) and one.attr == method]


def _value(written: ast.expr, names: dict[str, Any]) -> Any:
    """Return the value of a name or an attribute; a property counts where Keras defines it."""
    value = value_of(written, names)
    of_keras = isinstance(value, property) and _is_of_keras(value.fget)
    if of_keras and isinstance(written, ast.Attribute):
        return getattr(value_of(written.value, names), written.attr)
    return value


def _is_of_keras(defined: Any) -> bool:
    return getattr(defined, "__module__", "").partition(".")[0] in ("keras", "tf_keras")
