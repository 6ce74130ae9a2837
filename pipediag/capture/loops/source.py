"""The source of the script around a loop, as a syntax tree; nothing of it is run.

It tells how often a line is come to, what trains behind a loop, and if a loop only reads its data.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from types import FrameType
from typing import Any

from pipediag.capture.callsites import is_users


@lru_cache(maxsize=64)
def parsed(file: str) -> ast.Module | None:
    """Return the syntax tree of a file; None where there is no source, or none of Python's."""
    source = "".join(linecache.getlines(file))
    try:
        return ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def around(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """Iterate over the nodes around a line, the outermost first."""
    within: ast.AST | None = tree
    while within is not None:
        following = None
        for child in ast.iter_child_nodes(within):
            first, last = getattr(child, "lineno", None), getattr(child, "end_lineno", None)
            if first is not None and last is not None and first <= line <= last:
                following = child
        if following is not None:
            yield following
        within = following


_WHOLE = frozenset({"list", "tuple", "set", "sorted", "sum", "len", "max", "min", "any", "all"})
"""Functions of Python's that go through all that they are given."""
_CALLS_NO_MODEL = _WHOLE | frozenset(
    {"numpy", "append", "extend", "add", "update", "items", "int", "float", "str", "print", "range",
     "zip", "enumerate", "shape", "tolist", "item", "decode"}
)  # fmt: skip
"""Functions that run no model, by the last part of their names."""

_Iteration = ast.For | ast.AsyncFor | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def only_reads(frames: Iterable[FrameType]) -> bool:
    """Return True if the user's innermost line is known to only go through its data."""
    frame = next((one for one in frames if is_users(one.f_code.co_filename)), None)
    tree = parsed(frame.f_code.co_filename) if frame is not None else None
    if frame is None or tree is None:
        return False
    found = list(around(tree, frame.f_lineno))
    loops = [
        one for one in found if isinstance(one, _Iteration) and _goes_on_at(one, frame.f_lineno)
    ]
    if loops:
        return all(_name(call) in _CALLS_NO_MODEL for call in _called_for_each(loops[-1]))
    statement = next((one for one in reversed(found) if isinstance(one, ast.stmt)), None)
    if statement is None or isinstance(statement, _Iteration):
        return False
    return any(_name(call) in _WHOLE for call in _calls_in([statement]))


def _goes_on_at(loop: _Iteration, line: int) -> bool:
    """Return True if what it goes through is written on that line."""
    through = [loop.iter] if isinstance(loop, ast.For | ast.AsyncFor) else [
        one.iter for one in loop.generators
    ]  # fmt: skip
    return any(one.lineno <= line <= (one.end_lineno or line) for one in through)


def _called_for_each(loop: _Iteration) -> list[ast.Call]:
    match loop:
        case ast.For() | ast.AsyncFor():
            return _calls_in(loop.body)
        case ast.DictComp():
            return _calls_in([loop.key, loop.value])
        case _:
            return _calls_in([loop.elt])


def _calls_in(written: Iterable[ast.AST]) -> list[ast.Call]:
    return [node for one in written for node in ast.walk(one) if isinstance(node, ast.Call)]


def _name(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


_TRAIN = frozenset({"train_on_batch", "apply_gradients", "minimize", "GradientTape"})
_FIT = frozenset({"fit", "fit_generator"})
_KERAS_WORDS = frozenset(
    {"epochs", "batch_size", "steps_per_epoch", "validation_data", "callbacks", "verbose"}
)
"""One of these is given where `fit` is Keras', and not that of a scaler or an encoder."""
_MOST_PLACES = 8

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.AsyncFor | ast.While


def trains_behind(frames: Iterable[FrameType], *, in_fit: bool) -> list[str]:
    """Return places, as `file:line`, that train once the loop is over which the frames run in.

    Args:
        frames: innermost first.
        in_fit: whether Keras runs the loop, so that a single line of the user's calls it.
    """
    found: list[str] = []
    left_the_loop = in_fit
    for frame in frames:
        file, line = frame.f_code.co_filename, frame.f_lineno
        tree = parsed(file) if is_users(file) else None
        if tree is None:
            continue
        chain = _within_function([tree, *around(tree, line)])
        kinds = ast.stmt if left_the_loop else _Loop
        inner = [place for place, node in enumerate(chain) if place and isinstance(node, kinds)]
        if not inner:
            continue
        left_the_loop = True
        for place in range(inner[-1], 0, -1):
            for statement in _following(chain[place - 1], chain[place]):
                found += [f"{file}:{one}" for one in _lines_that_train(statement, tree)]
    return list(dict.fromkeys(found))[:_MOST_PLACES]


def _within_function(chain: list[ast.AST]) -> list[ast.AST]:
    """Return the part of the chain that the innermost function runs."""
    functions = [place for place, node in enumerate(chain) if isinstance(node, _Function)]
    return chain[functions[-1] :] if functions else chain


def _following(parent: ast.AST, child: ast.AST) -> list[ast.AST]:
    for _, value in ast.iter_fields(parent):
        if isinstance(value, list) and any(one is child for one in value):
            place = next(number for number, one in enumerate(value) if one is child)
            return [one for one in value[place + 1 :] if isinstance(one, ast.stmt)]
    return []


@dataclass(frozen=True)
class _Written:
    """Functions of a file, and models that it compiles."""

    functions: dict[str, _Function]
    compiled: frozenset[str]
    """Expressions on which `compile` is called."""

    def trains(self, call: ast.Call, seen: set[str]) -> bool:
        match call.func:
            case ast.Name(id=name) if name in self.functions and name not in seen:
                seen.add(name)
                return any(self.trains(one, seen) for one in _calls_in([self.functions[name]]))
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in _TRAIN:
                return True
            case ast.Attribute(value=of, attr=name) if name in _FIT:
                given = {keyword.arg for keyword in call.keywords}
                return bool(given & _KERAS_WORDS) or ast.unparse(of) in self.compiled
        return False


@lru_cache(maxsize=8)
def _written(tree: ast.Module) -> _Written:
    compiled = (
        ast.unparse(call.func.value)
        for call in _calls_in([tree])
        if isinstance(call.func, ast.Attribute) and call.func.attr == "compile"
    )
    functions = {one.name: one for one in ast.walk(tree) if isinstance(one, _Function)}
    return _Written(functions, frozenset(compiled))


def _lines_that_train(statement: ast.AST, tree: ast.Module) -> Iterator[int]:
    """Iterate over lines of calls that train, also by functions of that file."""
    if not isinstance(statement, _Function | ast.ClassDef):
        for call in _calls_in([statement]):
            if _written(tree).trains(call, set()):
                yield call.lineno


_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_SIZED = (list, tuple, dict, set, frozenset, range, str, bytes)
_AS_LONG = frozenset({"enumerate", "reversed", "sorted", "list", "tuple", "tqdm"})
_VIEWS = frozenset({"items", "keys", "values"})
_UNKNOWN = object()


def rounds_around(frames: Iterable[FrameType]) -> int | None:
    """Return the rounds of all loops around the user's innermost line, up to the first frame.

    The loop whose header that line is counts as none of them. 1 without any loop; None where the
    source does not tell.
    """
    rounds, within_users = 1, False
    for frame in frames:
        within_users = within_users or is_users(frame.f_code.co_filename)
        if not within_users or frame.f_code.co_name in _COMPREHENSIONS:
            continue
        sizes = [_Names(frame).size(loop) for loop in _loops_around(frame)]
        if None in sizes:
            return None
        rounds *= prod(size for size in sizes if size is not None)
    return rounds or None


def _loops_around(frame: FrameType) -> list[ast.expr | None]:
    """Return what each loop around the frame's line goes through; None for a condition."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    tree = parsed(file)
    if tree is None:
        return [None] if is_users(file) else []
    loops: list[ast.expr | None] = []
    for following in around(tree, line):
        match following:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                loops = []
            case ast.For() | ast.AsyncFor() if _in_body(following, line):
                loops.append(following.iter)
            case ast.While() if _in_body(following, line):
                loops.append(None)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                loops += [None if one.ifs else one.iter for one in following.generators]
    return loops


def _in_body(loop: ast.For | ast.AsyncFor | ast.While, line: int) -> bool:
    return loop.body[0].lineno <= line <= (loop.body[-1].end_lineno or 0)


class _Names:
    """The values that a frame's names have, as far as they can be read without running anything."""

    def __init__(self, frame: FrameType) -> None:
        self._scopes: tuple[Mapping[str, Any], ...] = (frame.f_locals, frame.f_globals)

    def size(self, iterated: ast.expr | None) -> int | None:
        """Return the rounds of a loop over that; None where it is unknown."""
        match iterated:
            case ast.Tuple() | ast.List() | ast.Set():
                starred = any(isinstance(one, ast.Starred) for one in iterated.elts)
                return None if starred else len(iterated.elts)
            case ast.Call(func=ast.Name(id=name), args=given) if given:
                return self._size_of_call(name, given)
            case ast.Call(func=ast.Attribute(value=of, attr=name), args=given):
                return self._size_of_method(of, name, given)
            case ast.expr():
                return _length(self._value(iterated))
        return None

    def _size_of_call(self, name: str, given: list[ast.expr]) -> int | None:
        if self._named(name) not in (_UNKNOWN, None) and name not in ("tqdm", "trange"):
            return None  # the script's own, under a name of Python's
        if name in ("range", "trange"):
            numbers = [self._number(one) for one in given]
            known = [one for one in numbers if one is not None]
            whole = len(known) == len(numbers) <= 3 and not (len(known) == 3 and known[2] == 0)
            return len(range(*known)) if whole else None
        if name == "zip":
            sizes = [self.size(one) for one in given]
            known = [size for size in sizes if size is not None]
            return min(known) if len(known) == len(sizes) else None
        return self.size(given[0]) if name in _AS_LONG else None

    def _size_of_method(self, of: ast.expr, name: str, given: list[ast.expr]) -> int | None:
        if name in ("tqdm", "trange") and given:
            return self._size_of_call(name, given)
        if name == "product" and given:  # of itertools
            sizes = [self.size(one) for one in given]
            return None if None in sizes else prod(size for size in sizes if size is not None)
        value = self._value(of)
        if name in _VIEWS and type(value) is dict:
            return len(value)
        if name == "split":  # of scikit-learn's folds
            folds = _attribute(value, "n_splits")
            return folds if type(folds) is int else None
        return None

    def _number(self, written: ast.expr) -> int | None:
        match written:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._number(operand)
                return None if number is None else -number
            case ast.BinOp(left=left, op=operator, right=right):
                return _worked_out(self._number(left), operator, self._number(right))
            case ast.Call(func=ast.Name(id="len" | "int" as name), args=[one]):
                return self.size(one) if name == "len" else self._number(one)
        value = self._value(written)
        return value if type(value) is int else None

    def _value(self, written: ast.expr) -> Any:
        match written:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(value=of, attr=name):
                return _attribute(self._value(of), name)
            case ast.Subscript(value=of, slice=ast.Constant(value=key)):
                return _item(self._value(of), key)
        return _UNKNOWN

    def _named(self, name: str) -> Any:
        for scope in self._scopes:
            if name in scope:
                return scope[name]
        return _UNKNOWN


def _attribute(value: Any, name: str) -> Any:
    return _UNKNOWN if value is _UNKNOWN else inspect.getattr_static(value, name, _UNKNOWN)


def _item(held: Any, key: object) -> Any:
    if type(held) is dict:
        return held.get(key, _UNKNOWN)
    if isinstance(key, int) and type(held) in (list, tuple) and -len(held) <= key < len(held):
        return held[key]
    return _UNKNOWN


def _length(value: Any) -> int | None:
    if type(value) in _SIZED:
        return len(value)
    numpys = type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"
    return int(value.shape[0]) if numpys and value.ndim else None


def _worked_out(left: int | None, operator: ast.operator, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right:
            return left // right
    return None
