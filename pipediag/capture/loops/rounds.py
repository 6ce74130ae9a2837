"""How often a script comes to a line, by the loops of its source around that line.

Nothing of the script's is run for it: sizes are those of constants, and of values of Python's own
types, or NumPy's, that its names have at that moment. What only running would tell is unknown.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from math import prod
from types import FrameType
from typing import Any

from pipediag.capture.callsites import is_users
from pipediag.capture.loops.source import around, parsed

_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_SIZED = (list, tuple, dict, set, frozenset, range, str, bytes)
_AS_LONG = frozenset({"enumerate", "reversed", "sorted", "list", "tuple", "tqdm"})
_VIEWS = frozenset({"items", "keys", "values"})
_UNKNOWN = object()


def rounds_around(frames: Iterable[FrameType]) -> int | None:
    """Rounds of all loops around the innermost line of the user's, up to the script's first frame.

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
    """What each loop around the frame's line goes through; None for one with a condition."""
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
        """How many rounds a loop over that makes."""
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
