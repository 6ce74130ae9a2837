"""Options of a dataset and settings of Keras, set in the source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import libcst as cst

from pipediag.patching.chains import (
    argument,
    assigned,
    assigns,
    behind,
    block_of,
    inserted,
    statement_of,
    with_arguments,
)
from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Source,
    called,
    only,
    receiver,
)
from pipediag.session.recorded_loops import KerasUse
from pipediag.vocabulary import OTHER_OPTIMIZERS, ROW_WISE, Scalar

EXPERIMENTAL = ("optimization", "distribute", "slack")
"""Options before whose names TensorFlow still has `experimental_`, and a session does not."""
_DOTTED = re.compile(r"[a-z_]+(\.[a-z_]+)*")


def attribute(name: str) -> str:
    """An option's name as it is written: `experimental_optimization.map_fusion`."""
    return f"experimental_{name}" if name.partition(".")[0] in EXPERIMENTAL else name


def with_options(source: Source, last: cst.Call, options: Mapping[str, Scalar]) -> list[Change]:
    """Set options of the pipeline that ends with this call; change those that the file gives it."""
    changes: list[Change] = []
    missing: list[str] = []
    for name, value in options.items():
        if not _DOTTED.fullmatch(name):
            raise NotPatchableError("An option with that name can't be written.")
        written = attribute(name)
        given = _given(source, last, written)
        if given is not None:
            changes.append(Change.replace(source.span(given), repr(value)))
        else:
            missing.append(f"{written} = {value!r}")
    return [*changes, *_added(source, last, missing)] if missing else changes


def _given(source: Source, last: cst.Call, written: str) -> cst.BaseExpression | None:
    """Return the value that the file gives this option of the pipeline, where it does so once."""
    set_ = [
        node
        for node in source.all(cst.Assign)
        if isinstance(node.targets[0].target, cst.Attribute)
        and source.code(node.targets[0].target).endswith(f".{written}")
    ]
    if not set_:
        return None
    call, target = _call_with_options(source, last), source.code(set_[0].targets[0].target)
    options = argument(call, "options") if call is not None else None
    if (
        len(set_) > 1
        or call is None
        or options is None
        or target != f"{source.code(options)}.{written}"
        or statement_of(source, set_[0]) not in block_of(source, statement_of(source, call))
    ):
        raise NotPatchableError(
            f"The file sets `{target}` several times, in some cases, or for another pipeline."
        )
    return set_[0].value


def _call_with_options(source: Source, last: cst.Call) -> cst.Call | None:
    """Return the only call that gives options to what ends with a call, there or by its name."""
    found = assigns(source, last)
    calls = [
        call
        for call in source.calls_of("with_options")
        if call is last
        or (above := receiver(call)) is last
        or (found is not None and isinstance(above, cst.Name) and above.value == found[1])
    ]
    return calls[0] if len(calls) == 1 else None


def _added(source: Source, last: cst.Call, lines: list[str]) -> list[Change]:
    module = source.needed_tensorflow()
    options = source.free_name("options")
    made = [f"{options} = {module}.data.Options()", *(f"{options}.{line}" for line in lines)]
    found = assigns(source, last)
    if found is not None:
        statement, variable = found
        with_them = f"{variable} = {variable}.with_options({options})"
        return [behind(source, statement, [*made, with_them])]
    start = source.span(statement_of(source, last)).start
    text = "".join(f"{source.indent(start)}{line}{source.newline}" for line in made)
    made_before = Change.insert(source.line_start(start), text)
    return [made_before, *inserted(source, last, f".with_options({options})")]


_PLAIN = ("steps_per_execution", "jit_compile", "run_eagerly")
_NOT_LAZY = ("gradient_accumulation_steps", "loss_scale_factor")
"""Arguments of Keras' optimizers that the lazy ones of `pipediag.optimizers` do not take."""


def compiled(
    source: Source, call: cst.Call, keras: KerasUse, settings: dict[str, Scalar]
) -> list[Change]:
    """The model compiled with other settings."""
    if "dtype_policy" in settings:
        raise NotPatchableError("The policy is for all layers but the last, and only you know it.")
    given = {
        node.targets[0].target.attr.value
        for node in source.all(cst.Assign)
        if isinstance(node.targets[0].target, cst.Attribute)
    }
    for name in sorted(given & set(settings)):
        raise NotPatchableError(f"The file also sets `{name}` outside `compile`.")
    plain = {name: repr(value) for name, value in settings.items() if name in _PLAIN}
    changes = with_arguments(source, call, plain)
    if (wanted := settings.get("optimizer")) is not None:
        own, optimizer = keras.optimizer or "", argument(call, "optimizer")
        other = OTHER_OPTIMIZERS.get(str(wanted), {}).get(own)
        if other is None or optimizer is None:
            raise NotPatchableError("The optimizer has no such form, or the call names none.")
        if wanted == ROW_WISE and "use_ema" in keras.optimizer_settings:
            raise NotPatchableError("Only you know if `use_ema` can go: the trial ran without it.")
        refused = _NOT_LAZY if wanted == ROW_WISE else ()
        change = _of_other_class(source, optimizer, own, other, refused)
        last = source.last_import(change.span.start)
        changes += [change, behind(source, last, [f"from pipediag.optimizers import {other}"])]
    if len(plain) + ("optimizer" in settings) != len(settings):
        raise NotPatchableError("`compile` has no such argument.")
    return changes


def _of_other_class(
    source: Source, value: cst.BaseExpression, name: str, other: str, refused: Sequence[str]
) -> Change:
    if isinstance(value, cst.Name):
        given, own = value.value, not source.is_parameter(value)
        values = [one[1] for node in source.nodes if (one := assigned(node)) and one[0] == given]
        if not own or len(values) != 1 or len(source.references(given)) != 1:
            raise NotPatchableError(f"`{given}` is not assigned once and used once.")
        value = values[0]
    if isinstance(value, cst.SimpleString):
        return Change.replace(source.span(value), f"{other}()")
    if not isinstance(value, cst.Call) or called(value) != name:
        raise NotPatchableError(f"The optimizer is not created by a call of `{name}`.")
    if any(argument(value, one) is not None for one in refused):
        raise NotPatchableError(f"`{other}` does not take all of its arguments.")
    return Change.replace(source.span(value.func), other)


_PYDATASETS = ("PyDataset", "Sequence")


def with_workers(source: Source, name: str | None, values: Mapping[str, str]) -> list[Change]:
    """Set the workers of a PyDataset where its class calls Keras or has to, or else wherever it is
    made."""
    named = (one for one in source.all(cst.ClassDef) if one.name.value == name)
    found = only(named, f"The file does not define `{name}` exactly once.")
    base = source.code(found.bases[0].value) if found.bases else ""
    if base.rpartition(".")[2] not in _PYDATASETS:
        raise NotPatchableError("The first of its bases is not that of Keras.")
    methods = [one for one in found.body.body if isinstance(one, cst.FunctionDef)]
    made = next((one for one in methods if one.name.value == "__init__"), None)
    if made is None:
        calls = source.calls_of(str(name))
        if not calls:
            raise NotPatchableError(f"The file does not create `{name}`.")
        return [change for call in calls for change in with_arguments(source, call, values)]
    begins = ("super(", f"{base}.")
    calls = [one for one in source.all(cst.Call, made) if called(one) == "__init__"]
    calls = [one for one in calls if source.code(one.func).startswith(begins)]
    own_values = {source.code(one.target) for one in source.all(cst.AssignTarget, made)}
    if not own_values.isdisjoint(f"self.{one}" for one in values):
        raise NotPatchableError("Its `__init__` sets them itself.")
    if not calls:
        return [_calling_keras(source, made, values)]
    call = only(calls, "Its `__init__` does not call that of Keras exactly once.")
    match call.args:
        case [cst.Arg(star="**", value=given)]:
            # They win over those of a caller, with which it was measured.
            own = ", ".join(f'"{name}": {value}' for name, value in values.items())
            span = source.span(given)
            return [Change.replace(span, f"{{**{source.code(given)}, {own}}}")]
    return with_arguments(source, call, values)


def _calling_keras(source: Source, made: cst.FunctionDef, values: Mapping[str, str]) -> Change:
    """Call Keras at the start of an `__init__` that does not."""
    first = made.body.body[0]
    if not isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement):
        raise NotPatchableError("Its `__init__` is written in one line.")
    line = f"super().__init__({', '.join(f'{name}={text}' for name, text in values.items())})"
    if made.get_docstring() is not None:
        return behind(source, first, [line])
    start = source.span(first).start
    return Change.insert(source.line_start(start), f"{source.indent(start)}{line}{source.newline}")


def input_name(call: cst.Call) -> str | None:
    """Return the name that a call gives an input; None where Keras makes one, or it is computed."""
    name = argument(call, "name")
    return str(name.evaluated_value) if isinstance(name, cst.SimpleString) else None


def input_shape(call: cst.Call) -> list[cst.BaseExpression] | None:
    """Return the dimensions that a call writes behind the batch's; None where it writes no such."""
    match argument(call, "shape"):
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return [one.value for one in elements]
    return None


def may_have_length(call: cst.Call, length: int) -> bool:
    """Return True unless a call of `Input` writes rows of another length."""
    shape = input_shape(call)
    if shape is None or len(shape) != 1:
        return shape is None
    if isinstance(shape[0], cst.Integer):
        return shape[0].evaluated_value == length
    return not (isinstance(shape[0], cst.Name) and shape[0].value == "None")
