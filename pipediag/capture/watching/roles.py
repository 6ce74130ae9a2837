"""What a loop is for: a step that writes a trainable variable makes it a training."""

from __future__ import annotations

from collections.abc import Iterable

from pipediag.capture.loops.loop import Loop
from pipediag.session.recorded_loops import RecordedLoop

_PREVIEW_BATCHES = 5


def learn(record: RecordedLoop) -> None:
    """A step of the loop wrote a trainable variable."""
    record.updates_variables = True
    if record.role == "other":
        record.role = "training"
        record.role_reason = "its steps write trainable variables"


def join(loop: Loop, joined: Loop) -> None:
    """Each step of the loop draws from the other one, too: what trains in it is the loop's."""
    record = joined.record
    if joined.diagnosis is not None or record.kind == "keras":
        return
    if joined.trains:
        learn(loop.record)
        record.role, record.updates_variables = "other", False
    record.part_of = loop.record.id
    record.role_reason = "its batches go into the steps of another loop"


def settle(loop: Loop, loops: Iterable[Loop]) -> None:
    """Name what a loop without updates was, among all of them, for the report."""
    record = loop.record
    if record.role != "other" or record.part_of is not None:
        return
    if record.steps <= _PREVIEW_BATCHES:
        record.role, record.role_reason = (
            "preview",
            f"{record.steps} batches, no variable written",
        )
        return
    trainings = [other.record.started_ns for other in loops if other.trains]
    if trainings and loop.last_ns <= min(trainings):
        record.role = "preparation"
        record.role_reason = "read before training began, without writing a trainable variable"
    elif trainings and record.only_reads:
        record.role = "reading"
        record.role_reason = "batches are read, and no model is called for them"
    elif trainings:
        record.role = "validation"
        record.role_reason = "batches are consumed without writing a trainable variable"


def notice_beside(measured: Loop, loop: Loop) -> None:
    """Whether a step of the loop that is measured fell between two of another thread's."""
    if loop.trains and loop.record.beside is None and measured.last_ns > loop.last_ns:
        measured.record.beside, loop.record.beside = loop.record.id, measured.record.id
