"""Settings of Keras in the source: how a model is compiled, the workers of a PyDataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import libcst as cst

from pipediag.patching.arguments import argument, with_arguments
from pipediag.patching.names import is_parameter, last_import, references
from pipediag.patching.refusal import NotPatchableError, only
from pipediag.patching.sites import Repeats
from pipediag.patching.source import Change, Source, called, name_of, replaced
from pipediag.patching.statements import assigned, behind
from pipediag.session.recorded_loops import KerasUse
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, Scalar

_PLAIN = ("steps_per_execution", "jit_compile", "run_eagerly")
_NOT_LAZY = ("gradient_accumulation_steps", "loss_scale_factor")
"""Arguments of Keras' optimizers that those of `pipediag.optimizers` do not take."""

_BY_HAND = {
    "dtype_policy": "The policy holds for all layers but the last, which only their author can "
    "name.",
    "sampled_softmax": "The model has to be built without its last layer, and its loss is to be "
    "written.",
    "sgd_for_tables": "Keras gives one optimizer to all variables, so a class of its own is to be "
    "written.",
}
"""Settings and optimizers that can't be written, with the reason."""

COMPILE = "compile"
"""What the call of `compile` is anchored as, as operations are by their ids."""


def anchored(source: Source, keras: KerasUse, others: Sequence[Source]) -> Source:
    """Return the file as it was measured, with the call found that compiles the loop's model."""
    line = keras.compile_line
    calls = [one for one in source.calls_of("compile") if source.line(one) == line]
    call = only(calls, f"Line {line} calls `compile` {len(calls)} times.")
    around = source.around(call, cst.FunctionDef)
    if around is not None and around.name.value == "compile":
        raise NotPatchableError("The model has a `compile` of its own, which may not take that.")
    Repeats([source, *others], what="model").refuse(source, call)
    start = source.span(name_of(call)).start
    return replace(source, anchors={**source.anchors, COMPILE: start})


def compiled(
    source: Source, call: cst.Call, keras: KerasUse, settings: dict[str, Scalar]
) -> list[Change]:
    """The model compiled with other settings."""
    for name, reason in _BY_HAND.items():
        if name in (*settings, settings.get("optimizer")):
            raise NotPatchableError(reason)
    given = {
        node.targets[0].target.attr.value
        for node in source.all(cst.Assign)
        if isinstance(node.targets[0].target, cst.Attribute)
    }
    for name in sorted(given & set(settings)):
        raise NotPatchableError(f"The file sets `{name}` outside of `compile`, too.")
    plain = {name: repr(value) for name, value in settings.items() if name in _PLAIN}
    changes = with_arguments(source, call, plain)
    if (wanted := settings.get("optimizer")) is not None:
        own, optimizer = keras.optimizer or "", argument(call, "optimizer")
        if wanted != "row_wise" or own not in ROW_WISE_OPTIMIZERS or optimizer is None:
            raise NotPatchableError("That optimizer has no row-wise form, or the call names none.")
        lazy = ROW_WISE_OPTIMIZERS[own]
        change = _lazy(source, optimizer.value, own, lazy)
        line, last = (
            f"from pipediag.optimizers import {lazy}",
            last_import(source, change.span.start),
        )
        if last is None:
            raise NotPatchableError(f"No import stands before it, and `{line}` is to be one.")
        changes += [change, behind(source, last, [line])]
    if len(plain) + ("optimizer" in settings) != len(settings):
        raise NotPatchableError("That setting is no argument of `compile`.")
    return changes


def _lazy(source: Source, value: cst.BaseExpression, name: str, lazy: str) -> Change:
    if isinstance(value, cst.Name):
        if is_parameter(source, value):
            raise NotPatchableError(f"`{value.value}` is what the callers of a function give it.")
        given = value.value
        values = [one[1] for node in source.nodes if (one := assigned(node)) and one[0] == given]
        if len(values) != 1 or len(references(source, given)) != 1:
            raise NotPatchableError(f"`{given}` is not made in one place and used in one.")
        value = values[0]
    if isinstance(value, cst.SimpleString):
        return replaced(source.span(value), f"{lazy}()")
    if not isinstance(value, cst.Call) or called(value) != name:
        raise NotPatchableError(f"What it is given is not made by a call of `{name}`.")
    if any(argument(value, refused) is not None for refused in _NOT_LAZY):
        raise NotPatchableError(f"{lazy} takes not all of its arguments.")
    return replaced(source.span(value.func), lazy)


def with_workers(source: Source, name: str | None, values: Mapping[str, str]) -> list[Change]:
    """Set the workers of a PyDataset where its class calls Keras, or else where it is made."""
    named = (each for each in source.all(cst.ClassDef) if each.name.value == name)
    found = only(named, f"The file does not define `{name}` once.")
    made = [each for each in found.body.body if isinstance(each, cst.FunctionDef)]
    made = [each for each in made if each.name.value == "__init__"][:1]
    if made:
        code = source.module.code_for_node
        calls = [
            call
            for call in source.all(cst.Call, made[0])
            if called(call) == "__init__" and code(call.func).startswith("super(")
        ]
        call = only(calls, "Its `__init__` does not call that of Keras once.")
    else:
        calls = source.calls_of(name) if name is not None else []
        call = only(calls, f"`{name}` is made in {len(calls)} places.")
    return with_arguments(source, call, values)
