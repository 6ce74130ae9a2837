"""Embedding tables in words: what a step does with them, and their memory."""

from __future__ import annotations

from pipediag.facts.embeddings import MemoryPlan, padding_percent
from pipediag.reporters.words.quantities import NOTHING, byte_count, number, percent
from pipediag.session.loops import Embedding
from pipediag.session.recorded_loops import EmbeddingIds


def gradient(table: Embedding) -> str:
    """Return `sparse`, `dense` or `frozen`."""
    return table.gradient or (NOTHING if table.trainable else "frozen")


def update(table: Embedding) -> str:
    """Return what the optimizer updates in a step."""
    return {"dense": "whole table", "sparse": "its rows", None: NOTHING}[table.update]


def rows_touched(table: Embedding) -> str:
    """Return how many different rows the lookups of a step need: `2,431 of 2,560`."""
    ids = table.ids
    if ids is None:
        return NOTHING
    lookups = ids.lookups / max(ids.batches, 1)
    return f"{number(round(ids.unique_per_step))} of {number(round(lookups))}"


def padding(table: Embedding) -> str:
    """Return the share of padding, where it is known which id that is."""
    return percent(padding_percent(table))


def looked_at(ids: EmbeddingIds) -> str:
    """Return the batches that the figures are from."""
    batches = "1 batch" if ids.batches == 1 else f"{ids.batches} batches"
    return f"{batches}, {number(ids.first_batch)} to {number(ids.last_batch)}"


def memory_needed(plan: MemoryPlan) -> str:
    """Return what training takes and what the device lacks, as sentences."""
    text = f"Training takes {byte_count(plan.needed_bytes)} at the peak of a step"
    if plan.device_bytes is not None:
        basis = "as given" if plan.given else "as measured"
        text += f"; the device has {byte_count(plan.device_bytes)}, {basis}"
        if plan.lacking_bytes:
            text += f": {byte_count(plan.lacking_bytes)} too little"
    missing = (
        "" if plan.other_bytes is not None else " The memory of the other layers is not known."
    )
    return f"{text}.{missing} Activations, data and TensorFlow's own memory are not included."
