"""The variants of a pipeline that are held against each other: guide, pipediag, every subset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    Edit,
    Insert,
    SetParameters,
    as_written,
    touched,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

MOST_EDITS = 5
"""All subsets of five edits are 32 arms."""

_CALLS = {"map": "num_parallel_calls", "interleave": "num_parallel_calls"}
_READERS = {"TFRecordDataset": "num_parallel_reads"}
_PARALLEL = {**_CALLS, **_READERS}


@dataclass(frozen=True)
class EditArm:
    """A variant: the pipeline as written with changes."""

    name: str
    changes: tuple[Change, ...]
    edits: tuple[str, ...] = ()
    """Ids of the edits that it consists of, where it consists of edits."""


def guide(session: Session) -> EditArm:
    """What guides teach: AUTOTUNE wherever a call takes it, and a prefetch at the end."""
    changes: list[Change] = [
        SetParameters(op.id, {_PARALLEL[op.kind]: AUTOTUNE})
        for op in _written(session)
        if op.kind in _PARALLEL and _several_files(op)
    ]
    last = [op for op in _written(session) if op.inside_function_of is None][-1]
    if last.kind == "prefetch":
        changes.append(SetParameters(last.id, {"buffer_size": AUTOTUNE}))
    else:
        changes.append(Insert(last.id, "prefetch", {"buffer_size": AUTOTUNE}))
    return EditArm("guide", tuple(changes))


def proposed(session: Session) -> list[Edit]:
    """Edits of the pipeline that findings propose, each once, in the session's order.

    What changes the model or a hyper-parameter is no edit of the pipeline, and is left out.
    """
    found = [
        finding.edit
        for finding in session.findings
        if finding.edit is not None
        and finding.status == "fail"
        and finding.effect_on_results != "changes a hyper-parameter"
    ]
    of_pipeline = [edit for edit in found if "model" not in touched(edit.changes)]
    return list({edit.id: edit for edit in of_pipeline}.values())


def confirmed(session: Session) -> list[Edit]:
    """The proposed edits that pipediag would keep: those of its combination, or the confirmed."""
    states = {f.edit.id: f.trial.state for f in session.findings if f.edit is not None}
    kept = [edit for edit in proposed(session) if states[edit.id] == "confirmed"]
    if session.combined is None:
        return kept
    return [edit for edit in kept if edit.id in session.combined.findings]


def arm_of(name: str, edits: Sequence[Edit]) -> EditArm:
    """All changes of some edits together."""
    changes = tuple(as_written(change) for edit in edits for change in edit.changes)
    return EditArm(name, changes, tuple(edit.id for edit in edits))


def subsets(edits: Sequence[Edit]) -> Iterator[EditArm]:
    """Every subset of the first edits, the empty one first, called by its edits' ids."""
    edits = edits[:MOST_EDITS]
    for size in range(len(edits) + 1):
        for chosen in combinations(edits, size):
            yield arm_of(" + ".join(edit.id for edit in chosen) or "as written", chosen)


def _written(session: Session) -> list[Operation]:
    ops = session.pipeline.ops if session.pipeline else []
    return [op for op in ops if not (op.made_by_framework or op.inserted_by_tensorflow)]


def _several_files(op: Operation) -> bool:
    return op.kind not in _READERS or op.parameters.get("file_count") not in (None, 1)
