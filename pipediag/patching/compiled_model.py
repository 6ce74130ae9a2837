"""Settings with which a Keras model is compiled, set in the source."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

import libcst as cst

from pipediag.patching.arguments import argument, with_arguments
from pipediag.patching.names import is_parameter, last_import, references
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.sites import refuse_repeated
from pipediag.patching.source import Change, Source, called_name, insertion, replaced
from pipediag.patching.statements import (
    Statement,
    assigned,
    before,
    behind,
    function_around,
    receiver,
)
from pipediag.session.recorded_loops import KerasUse
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, Scalar

_PLAIN = ("steps_per_execution", "jit_compile", "run_eagerly")
_NOT_LAZY = ("gradient_accumulation_steps", "loss_scale_factor")
"""Arguments of Keras' optimizers that those of `pipediag.optimizers` do not take."""


COMPILE = "compile"
"""What the call of `compile` is anchored as, as operations are by their ids."""


def anchored(source: Source, keras: KerasUse, line: int | None, others: Sequence[Source]) -> Source:
    """Return the file as it was measured, with the call found that compiles the loop's model.

    Args:
        source: file that compiles the model, or that trains it where no `compile` was recorded.
        keras: what was recorded of the model.
        line: line of the loop, in the same file.
        others: other files of the program, which may call the function that compiles it.

    Raises:
        NotPatchableError: the call is not known.
    """
    if keras.compile_line is not None:
        call = _recorded(source, keras.compile_line)
    else:
        call = _compile(source, line)
    refuse_repeated(source, call, what="model", others=others)
    name = called_name(call)
    assert name is not None
    return replace(source, anchors={**source.anchors, COMPILE: source.span(name).start})


def compiled(
    source: Source, call: cst.Call, keras: KerasUse, settings: dict[str, Scalar]
) -> list[Change]:
    """The model compiled with other settings.

    Raises:
        NotPatchableError: a setting is no argument of `compile`.
    """
    if "dtype_policy" in settings:
        raise NotPatchableError(
            "The policy holds for all layers but the last, which only their author can name."
        )
    if "sampled_softmax" in settings:
        raise NotPatchableError(
            "The model has to be built without its last layer, and its loss is to be written."
        )
    if settings.get("optimizer") == "sgd_for_tables":
        raise NotPatchableError(
            "Keras gives one optimizer to all variables, so a class of its own is to be written."
        )
    _refuse_set_elsewhere(source, settings)
    changes: list[Change] = []
    plain = {name: repr(value) for name, value in settings.items() if name in _PLAIN}
    changes.extend(with_arguments(source, call, plain))
    if (optimizer := settings.get("optimizer")) is not None:
        changes.extend(_optimizer(source, call, keras, optimizer))
    if len(plain) + ("optimizer" in settings) != len(settings):
        raise NotPatchableError("That setting is no argument of `compile`.")
    return changes


def _refuse_set_elsewhere(source: Source, settings: dict[str, Scalar]) -> None:
    """Raises NotPatchableError where the file sets outside of `compile` what that would set."""
    given = {
        node.targets[0].target.attr.value
        for node in source.nodes
        if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Attribute)
    }
    for name in sorted(given & set(settings)):
        raise NotPatchableError(f"The file sets `{name}` outside of `compile`, too.")


def _recorded(source: Source, line: int) -> cst.Call:
    """Return the one call of `compile` on a line, which is not that of a model's own `compile`."""
    calls = [
        call
        for call in source.calls.values()
        if (name := called_name(call)) is not None
        and name.value == "compile"
        and source.line(call) == line
    ]
    if len(calls) != 1:
        raise NotPatchableError(f"Line {line} calls `compile` {len(calls)} times.")
    around = function_around(source, calls[0])
    if around is not None and around.name.value == "compile":
        raise NotPatchableError("The model has a `compile` of its own, which may not take that.")
    return calls[0]


def _compile(source: Source, line: int | None) -> cst.Call:
    """The one call of `compile` that has made the model: of what the loop's line calls a method on,
    or in the function that gives it.
    """
    functions = (each for each in source.nodes if isinstance(each, cst.FunctionDef))
    if any(function.name.value == "compile" for function in functions):
        raise NotPatchableError("The file has a `compile` of its own, which may not take that.")
    trained = [
        root
        for call in source.calls.values()
        if source.line(call) == line and (root := receiver(call)) is not None
    ]
    names = {source.code(root) for root in trained}
    makers = _makers(source, trained)
    calls = [
        call
        for call in source.calls.values()
        if (name := called_name(call)) is not None
        and name.value == "compile"
        and (root := receiver(call)) is not None
        and (source.code(root) in names or _is_given_by(source, call, root, makers))
    ]
    if len(calls) != 1:
        count = f"{len(calls)} models" if calls else "no model that the loop is known to train"
        raise NotPatchableError(f"The file compiles {count}.")
    return calls[0]


def _makers(source: Source, trained: Sequence[cst.BaseExpression]) -> set[str]:
    """Functions whose calls give what is trained."""
    names = {root.value for root in trained if isinstance(root, cst.Name)}
    given = [found[1] for node in source.nodes if (found := assigned(node)) and found[0] in names]
    return {
        called.value
        for value in (*trained, *given)
        if isinstance(value, cst.Call) and (called := called_name(value)) is not None
    }


def _is_given_by(
    source: Source, call: cst.Call, root: cst.BaseExpression, makers: Set[str]
) -> bool:
    """Return True if one of these functions compiles what it returns there."""
    function = function_around(source, call)
    return (
        function is not None
        and function.name.value in makers
        and any(
            isinstance(node, cst.Return)
            and node.value is not None
            and source.code(node.value) == source.code(root)
            and function in source.ancestors(node)
            for node in source.nodes
        )
    )


def _optimizer(source: Source, call: cst.Call, keras: KerasUse, wanted: Scalar) -> list[Change]:
    if wanted != "row_wise":
        return with_arguments(source, call, {"optimizer": f'"{_identifier(wanted)}"'})
    lazy = ROW_WISE_OPTIMIZERS.get(keras.optimizer or "")
    if lazy is None:
        raise NotPatchableError("That optimizer has no row-wise form.")
    given = argument(call, "optimizer")
    if given is None:
        raise NotPatchableError("The call names no optimizer.")
    change = _lazy(source, given.value, keras.optimizer or "", lazy)
    return [change, _imported(source, lazy, change.span.start)]


def _identifier(value: Scalar) -> str:
    if not isinstance(value, str) or not value.isidentifier():
        raise NotPatchableError("That is no optimizer.")
    return value


def _lazy(source: Source, value: cst.BaseExpression, name: str, lazy: str) -> Change:
    """The optimizer's row-wise form with the same arguments, where the value is made."""
    if isinstance(value, cst.Name):
        if is_parameter(source, value):
            raise NotPatchableError(f"`{value.value}` is what the callers of a function give it.")
        value = _made_once(source, value.value)
    if isinstance(value, cst.SimpleString):
        return replaced(source.span(value), f"{lazy}()")
    called = called_name(value) if isinstance(value, cst.Call) else None
    if not isinstance(value, cst.Call) or called is None or called.value != name:
        raise NotPatchableError(f"What it is given is not made by a call of `{name}`.")
    if any(argument(value, refused) is not None for refused in _NOT_LAZY):
        raise NotPatchableError(f"{lazy} takes not all of its arguments.")
    return replaced(source.span(value.func), lazy)


def _made_once(source: Source, name: str) -> cst.BaseExpression:
    values = [
        found[1]
        for node in source.nodes
        if (found := assigned(node)) is not None and found[0] == name
    ]
    if len(values) != 1 or len(references(source, name)) != 1:
        raise NotPatchableError(f"`{name}` is not made in one place and used in one.")
    return values[0]


def _imported(source: Source, lazy: str, use: int) -> Change:
    """Its import behind the last one; Keras must have been imported by then, as the script does."""
    line = f"from pipediag.optimizers import {lazy}"
    last = last_import(source, use)
    if last is not None:
        return behind(source, last, [line])
    first = source.module.body[0]
    if source.module.get_docstring() is not None and isinstance(first, cst.SimpleStatementLine):
        return behind(source, first, [line])
    if not isinstance(first, Statement):
        return insertion(0, f"{line}{source.newline}")
    return before(source, first, [line])
