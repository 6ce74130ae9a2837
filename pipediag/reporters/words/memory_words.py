"""A memory plan in words, for the terminal and the page."""

from __future__ import annotations

from pipediag.facts.embeddings import MemoryPlan
from pipediag.reporters.words.quantities import byte_count

ON_TOP = "Activations, the data and what TensorFlow itself takes come on top."


def needed(plan: MemoryPlan) -> str:
    """Return what training takes and what the device lacks, as sentences."""
    text = f"Training takes {byte_count(plan.needed_bytes)} at the peak of a step"
    if plan.device_bytes is not None:
        basis = "as given" if plan.given else "as measured"
        text += f"; the device has {byte_count(plan.device_bytes)}, {basis}"
        if plan.lacking_bytes:
            text += f": {byte_count(plan.lacking_bytes)} too little"
    missing = "" if plan.other_bytes is not None else " What is no table is not known."
    return f"{text}.{missing} {ON_TOP}"
