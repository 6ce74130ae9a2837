"""The edit that copies each batch to its accelerator ahead of the step."""

from __future__ import annotations

import re

from pipediag.facts.pipeline import last_operation
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit, Insert
from pipediag.session.model import Session

UNTRIED = (
    "No pipeline of tf.data feeds a single device here, so that nothing can be copied to it ahead."
)


def prefetched_to(session: Session, device: DeviceActivity, rule: str) -> Edit | None:
    """`prefetch_to_device` behind everything else; None without a pipeline or under a strategy.

    A strategy copies to its devices by itself, and `prefetch_to_device` serves one device.
    """
    loop, last = session.diagnosed_loop(), last_operation(session)
    if loop is None or loop.kind == "distributed" or loop.replicas > 1 or last is None:
        return None
    number = re.search(r"\d+$", device.name)
    name = f"/gpu:{number.group() if number else 0}"
    return Edit(
        id=rule,
        label=f"prefetch_to_device({name}) at the end of the pipeline",
        changes=(Insert(last.id, "prefetch_to_device", {"device": name}),),
    )
