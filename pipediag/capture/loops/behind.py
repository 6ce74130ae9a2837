"""What else trains behind a loop, by the script's source: nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType

from pipediag.capture.callsites import is_users
from pipediag.capture.loops.source import around, parsed

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
    """Places, as `file:line`, that train once the loop is over which the frames run in.

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
    """The part of it that the innermost function runs."""
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
    """What a file's source says of all its calls."""

    functions: dict[str, _Function]
    compiled: frozenset[str]
    """What `compile` is called on, as written."""

    def trains(self, call: ast.Call, seen: set[str]) -> bool:
        match call.func:
            case ast.Name(id=name) if name in self.functions and name not in seen:
                seen.add(name)
                return any(self.trains(one, seen) for one in _calls(self.functions[name]))
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
        for call in _calls(tree)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "compile"
    )
    functions = {one.name: one for one in ast.walk(tree) if isinstance(one, _Function)}
    return _Written(functions, frozenset(compiled))


def _lines_that_train(statement: ast.AST, tree: ast.Module) -> Iterator[int]:
    """Of calls in it, also of functions of that file that train."""
    if not isinstance(statement, _Function | ast.ClassDef):
        for call in _calls(statement):
            if _written(tree).trains(call, set()):
                yield call.lineno


def _calls(node: ast.AST) -> list[ast.Call]:
    return [one for one in ast.walk(node) if isinstance(one, ast.Call)]
