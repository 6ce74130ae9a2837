"""Functions of the script that run other code while an edit of it is tried.

The code comes from the patched file, so that what is timed is what a patch would write.
"""

from __future__ import annotations

import dataclasses
import gc
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from pipediag.capture.callsites import frames, name_of, place_of
from pipediag.capture.process import let_pass
from pipediag.capture.replay import NotReplayableError
from pipediag.capture.replay.elements import difference_of, first_elements
from pipediag.capture.replay.rebuilding import built, refuse_to_disturb, without_caches
from pipediag.capture.replay.replacing import Attribute, attributes_set
from pipediag.capture.replay.sources import exchanged, functions_of
from pipediag.session.edits import RESULTS_DIFFER, Change, CompileFunction, RewriteCall

_ELEMENTS = 64
_SECONDS = 2.0


def other_code(
    changes: Sequence[Change],
    files: Mapping[str, str],
    step_failed: Callable[[BaseException], None],
) -> list[Attribute]:
    """Find the functions, and compile what they run instead from the patched `files`, by path.

    `step_failed` receives the error of a function that was made a `tf.function`; it then runs as
    the script has it.
    """
    others = list(exchanged(files))
    found: list[Attribute] = []
    for change in changes:
        if isinstance(change, RewriteCall):
            found += _rewritten(change, others)
        elif isinstance(change, CompileFunction) and change.reduce_retracing:
            found += _relaxed(change)
        elif isinstance(change, CompileFunction):
            found += _compiled(change, step_failed)
    return found


def traces(code: Sequence[Attribute]) -> int | None:
    """Return the number of traces that serve all shapes so far; None where each shape has its
    own."""
    return max((len(other) for _, name, other in code if name == _CACHE), default=None)


def _rewritten(change: RewriteCall, others: Sequence[Attribute]) -> list[Attribute]:
    name, found = change.function.rpartition(".")[2], list[Attribute]()
    for function, attribute, other in others:
        parts = _with_comprehensions(function.__code__)
        lines = {line for own in parts if own.co_name == name for _, _, line in own.co_lines()}
        if function.__code__.co_filename == change.file and change.line in lines:
            found.append((function, attribute, other))
    if not found:
        raise NotReplayableError(f"The function `{change.function}` can't be exchanged.")
    return found


_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def _with_comprehensions(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code, and that of comprehensions in it, which no function object has."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType) and each.co_name in _COMPREHENSIONS:
            yield from _with_comprehensions(each)


_CALLED = 1_364_287_911
"""Placeholder for the compiled function in the code of a call."""


def _compiled(
    change: CompileFunction, failed: Callable[[BaseException], None]
) -> Iterator[Attribute]:
    place = (change.file, change.line)
    found = [
        each
        for each in gc.get_objects()
        if type(each) is FunctionType
        and (each.__code__.co_filename, each.__code__.co_firstlineno) == place
    ]
    if not found:
        raise NotReplayableError(f"The function `{change.function}` was not found.")
    # One that asks for its batch itself would do so in a graph, where no step is seen to begin.
    refuse_running([(function, "__code__", None) for function in found])
    for function in found:
        yield function, "__code__", _calling(_traced(function, failed), function)


def _traced(function: FunctionType, failed: Callable[[BaseException], None]) -> Callable[..., Any]:
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    own = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    own.__kwdefaults__, own.__module__ = function.__kwdefaults__, function.__module__
    compiled = polymorphic_function.function(own)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(*args, **kwargs)
        except Exception as error:
            let_pass(error)
            failed(error)
            return own(*args, **kwargs)

    return call


_CACHE = "_function_cache"
_OPTIONS = ("_variable_creation_config", "_no_variable_creation_config")


def _relaxed(change: CompileFunction) -> list[Attribute]:
    """Return attributes that give the `tf.function`s made of that function an empty store of
    traces, which then serve more shapes; a method has a `tf.function` for each object."""
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    found: list[Attribute] = []
    for function in gc.get_objects():
        if type(function) is not polymorphic_function.Function:
            continue
        _, site = place_of(function)
        if site is None or (site.file, site.line) != (change.file, change.line):
            continue
        options = {name: own for name, own in vars(function).items() if own and name in _OPTIONS}
        if options:
            cache = type(vars(function)[_CACHE])()
            found.append((function, _CACHE, cache))
        for name, own in options.items():
            captures = type(own.function_captures)()
            given = {"function_cache": cache, "function_captures": captures}
            relaxed = dataclasses.replace(own, reduce_retracing=True, **given)
            found.append((function, name, relaxed))
    if not found:
        raise NotReplayableError(f"The function `{change.function}` was not found.")
    return found


def _calling(call: Callable[..., Any], function: FunctionType) -> CodeType:
    """Return code that calls this in the function's place, and closes over the same names."""
    names = ", ".join(function.__code__.co_freevars)
    text = (
        f"def around({names}):\n"
        "    def function(*args, **kwargs):\n"
        f"        call, _ = {_CALLED}, lambda: ({names})\n"
        "        return call(*args, **kwargs)\n"
        "    return function\n"
    )
    codes = functions_of(text, function.__code__.co_filename)
    code = next(one for one in codes if one.co_name == "function")
    assert code.co_freevars == function.__code__.co_freevars
    constants = tuple(call if one == _CALLED else one for one in code.co_consts)
    return code.replace(co_consts=constants)


def refuse_running(code: Sequence[Attribute]) -> None:
    """Raise for functions that are running, and go on with their own code: generators, and those
    that called what runs now."""
    running = {frame.f_code for frame in frames()}
    for function, name, _ in code:
        own = function.__code__ if name == "__code__" else None
        if own is not None and (own in running or own.co_flags & inspect.CO_GENERATOR):
            raise NotReplayableError(f"`{name_of(own)}` is running, and goes on with its own code.")


def verify_code(dataset: Any, changes: Sequence[Change], code: Sequence[Attribute]) -> None:
    """Compare the elements of the operation that calls the functions, with each code.

    Where two passes with the script's own code differ, only structure and types are compared.
    """
    for change in changes:
        if not isinstance(change, RewriteCall) or change.op_id is None:
            continue
        graph = without_caches(dataset)
        refuse_to_disturb(graph)
        part = built(graph, graph.node(change.op_id))
        own = first_elements(part, _ELEMENTS, _SECONDS).elements
        with attributes_set(*code):
            other = first_elements(part, _ELEMENTS, _SECONDS).elements
        again = first_elements(part, _ELEMENTS, _SECONDS).elements
        repeats = difference_of(own, again, values=True) is None
        difference = difference_of(own, other, values=repeats)
        if difference is not None:
            raise NotReplayableError(f"{RESULTS_DIFFER[1]}: {difference}.")
