"""What training takes of memory, table by table, and what each way out would leave of it."""

from __future__ import annotations

from typing import Literal

from pipediag.session.record import Record
from pipediag.session.way_times import TableTimes
from pipediag.vocabulary import WayName

MEMORY_PLAN_VERSION = "1"
"""A major alone: pipediag writes plans and reads none."""


class WayOut(Record):
    """One change of a table, with all else as it is."""

    name: WayName
    device_bytes: int
    """Of the table with its slots and temporaries, on one device."""
    host_bytes: int | None = 0
    """None where it goes by ids of which not all were seen, as `exchanged_missing` says."""
    saved_bytes: int
    """Of the device; negative where it takes more."""
    exchanged_bytes_per_step: int | None = None
    """Between devices, or device and host; None where nothing is, or no ids were seen."""
    exchanged_missing: str | None = None
    """Why that is not known of a way that exchanges something."""
    link_ms: float | None = None
    """What the exchange of a step takes at least, at the rate of the link as given."""
    link_missing: str | None = None
    """Why that is not known of a way that exchanges something."""
    hit_percent: float | None = None
    """Share of lookups that rows on the device answer; None where no ids were seen."""
    note: str
    """What it is, and what it changes."""


class TablePlan(Record):
    """An embedding table while it is trained."""

    layer: str
    rows: int
    dim: int
    dtype: str
    trainable: bool
    device: str | None
    table_bytes: int
    slot_bytes: int
    temporary_bytes: int
    """What the update makes of the table's size and has in memory at one time."""
    copy_bytes: int
    """A copy of the table that its lookup makes; it is gone when the update begins."""
    peak_bytes: int
    """Table, slots, and the larger of temporaries and copy."""
    checkpoint_bytes: int
    """Table and slots in a file."""
    ways: list[WayOut] = []
    times: TableTimes | None = None
    """Steps and look-ups of it alone, as it is and each way, timed on this machine."""
    times_missing: str | None = None


class ModelRest(Record):
    """What the model and its optimizer have beside the tables."""

    variable_bytes: int
    slot_bytes: int
    gradient_bytes: int
    """Of its trained variables, whose gradients are dense."""


class Room(Record):
    """A memory that the plan is held against."""

    where: Literal["device", "host"]
    bytes: int
    basis: Literal["given", "measured"]
    needed_bytes: int
    fits: bool


class MemoryPlan(Record):
    schema_version: str = MEMORY_PLAN_VERSION
    pipediag_version: str
    script: str
    optimizer: str | None
    tables: list[TablePlan]
    """The largest first."""
    rest: ModelRest | None
    rest_missing: str | None = None
    building_bytes: int
    """While the model is built: an initializer makes its values in up to two tensors beside the
    table."""
    first_step_bytes: int
    """At most in the first step, in which slots of one shape still share the values that they begin
    with, until each is written for the first time."""
    training_bytes: int
    """In a later step. Activations, the data and what TensorFlow itself takes come on top."""
    peak_bytes: int
    """The largest of these three."""
    checkpoint_bytes: int
    """Of a file with all variables and slots."""
    process_peak_bytes: int | None = None
    """What the process took at its peak as far as the run was seen; None where nobody looked."""
    rooms: list[Room] = []
    link_bytes_per_s: int | None = None
    """Of the link between devices, or device and host, as given."""
    warnings: list[str] = []
