"""Batches copied to the device ahead, where the script gives its training loop the data.

Nothing may follow such a copy, and it hides how many batches there are: variables stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from pipediag.patching.chains import argument
from pipediag.patching.evaluation_data import NO_DATASETS
from pipediag.patching.sites import iterated_data, uses_in
from pipediag.patching.source import Change, NotPatchableError, Source, called, only
from pipediag.session.loops import Loop

_Data = cst.Name | cst.Attribute | cst.Subscript | cst.Call


def with_copies_ahead(
    source: Source, loop: Loop, call: str, others: Sequence[Source]
) -> list[Change]:
    """Put the call behind what the loop reads.

    Raises:
        NotPatchableError: that is perhaps no dataset, or another one in another call.
    """
    if loop.kind not in ("keras", "eager") or loop.handed_on:
        raise NotPatchableError("The loop does not read the pipeline itself.")
    read = [one.iter for one in source.all(cst.For) if source.line(one) == loop.line]
    fits = (argument(fit, "x", ("x",)) for fit in source.calls_of("fit", line=loop.line))
    read += [data for data in fits if data is not None]
    whole = only(read, f"Line {loop.line} reads the data of {len(read)} loops.")
    data, calls = iterated_data(whole), {called(one) for one in source.all(cst.Call, whole)}
    if not isinstance(data, _Data) or not calls.isdisjoint(NO_DATASETS):
        raise NotPatchableError("What the loop reads is perhaps no dataset.")
    function = source.around(data, cst.FunctionDef)
    if function is not None and isinstance(data, cst.Name) and source.is_parameter(data):
        uses = sum(len(uses_in(where, source, function)) for where in (source, *others))
        if uses != 1:
            raise NotPatchableError(f"`{function.name.value}` is given data in {uses} places.")
    return [Change.insert(source.span(data).end, call)]
