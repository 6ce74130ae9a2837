"""A memory plan in words, for the terminal and the page."""

from __future__ import annotations

from pipediag.facts.memory_plan import plan_memory
from pipediag.reporters.words.quantities import byte_count
from pipediag.session.memory_plan import MemoryPlan, Room
from pipediag.session.model import Session

_BASIS = {"given": "as given", "measured": "as measured"}
_WORTH_A_PLAN = 10_000_000
"""Bytes of a table. Own choice: smaller ones are in no memory's way."""


def plan_of(session: Session) -> MemoryPlan | None:
    """The plan of a run that has a table worth one, or whose tables were timed for it."""
    largest = max((table.table_bytes for table in session.embeddings), default=0)
    worth_it = largest >= _WORTH_A_PLAN or session.way_times is not None
    return plan_memory(session) if worth_it else None


def peak(plan: MemoryPlan) -> str:
    """What training takes, as a sentence without its end."""
    if plan.peak_bytes == plan.training_bytes:
        when = "in a step"
    elif plan.peak_bytes == plan.first_step_bytes:
        when = "in its first step"
    else:
        when = "while it is built"
    return f"Training takes {byte_count(plan.peak_bytes)} at its peak, {when}"


def room(one: Room) -> str:
    """What a memory has, and what it lacks."""
    has = f"the {one.where} has {byte_count(one.bytes)}, {_BASIS[one.basis]}"
    if one.fits:
        return has
    return f"{has}: {byte_count(one.needed_bytes - one.bytes)} too little"


def together(plan: MemoryPlan) -> str:
    """Sums of all parts."""
    first = f"up to {byte_count(plan.first_step_bytes)} in the first step, "
    return (
        f"Together {byte_count(plan.building_bytes)} while the model is built, "
        f"{first if plan.first_step_bytes > plan.training_bytes else ''}"
        f"{byte_count(plan.training_bytes)} in a step, {byte_count(plan.checkpoint_bytes)} in a "
        "checkpoint."
    )


ON_TOP = "Activations, the data and what TensorFlow itself takes come on top."
