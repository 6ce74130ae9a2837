"""The memory that training takes, from the tables that a run has shown. All sums are of bytes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from pipediag import __version__
from pipediag.facts.machine import gpu_memory_bytes
from pipediag.facts.table_ways import Shares, as_it_is, ways_out
from pipediag.facts.trained_loop import trained_loop
from pipediag.facts.way_costs import over_link, times_of
from pipediag.session.embeddings import Embedding
from pipediag.session.loops import KerasUse
from pipediag.session.memory_plan import MemoryPlan, ModelRest, Room, TablePlan
from pipediag.session.model import Session

_INITIALISER_TENSORS = 2
"""Beside the table, of Keras' uniform initializer: it draws, scales and shifts. Measured by
benchmarks/memory_plan.py."""

_PROTOBUF_LIMIT = 2**31
"""Bytes of a message of protocol buffers, which graphs and their constants are."""

_NO_MODEL = (
    "No Keras model was seen to be trained by `fit`, so what is no table is left out of the sums."
)
_NOT_BUILT = "The model could not say how large its variables are, so what is no table is left out."


@dataclass(frozen=True)
class Given:
    """Memory as the user gives it, None is what was measured; and the link."""

    device_bytes: int | None = None
    host_bytes: int | None = None
    link_bytes_per_s: int | None = None
    """Between devices, or device and host: none is assumed where none is given."""


def plan_memory(
    session: Session, given: Given | None = None, shares: Shares | None = None
) -> MemoryPlan:
    """The plan of the loop that the session diagnoses.

    Args:
        session: of `pipediag analyze`, or of the few steps that `pipediag plan-memory` looks at.
        given: what the plan is held against.
        shares: into how many parts tables are divided in the ways out.
    """
    given, shares = given or Given(), shares or Shares()
    loop = trained_loop(session)
    keras = loop.keras if loop else None
    compiled = keras is not None and bool(keras.jit_compile)
    tables = [
        _table(session, table, given, shares, compiled=compiled) for table in session.embeddings
    ]
    rest = _rest(keras, tables)
    held = sum(one.table_bytes + one.slot_bytes for one in tables)
    held += rest.variable_bytes + rest.slot_bytes if rest else 0
    updating = held + sum(one.temporary_bytes for one in tables)
    updating += rest.gradient_bytes if rest else 0
    building = _building(tables, rest)
    first_step = updating + (0 if compiled else _shared_zeros(session.embeddings))
    training = max(held + sum(one.copy_bytes for one in tables), updating)
    peak = max(building, first_step, training)
    return MemoryPlan(
        pipediag_version=__version__,
        script=session.script.path,
        optimizer=keras.optimizer if keras else None,
        tables=tables,
        rest=rest,
        rest_missing=None if rest else (_NO_MODEL if keras is None else _NOT_BUILT),
        building_bytes=building,
        first_step_bytes=max(first_step, training),
        training_bytes=training,
        peak_bytes=peak,
        checkpoint_bytes=held,
        process_peak_bytes=session.host.rss_peak_bytes if session.host else None,
        rooms=_rooms(session, given, peak),
        link_bytes_per_s=given.link_bytes_per_s,
        warnings=list(_warnings(session, tables, compiled=compiled)),
    )


def _table(
    session: Session, table: Embedding, given: Given, shares: Shares, *, compiled: bool
) -> TablePlan:
    found = as_it_is(table, compiled=compiled)
    times, times_missing = times_of(session, table, shares)
    return TablePlan(
        layer=table.layer,
        rows=table.rows,
        dim=table.dim,
        dtype=table.dtype,
        trainable=table.trainable,
        device=table.device,
        table_bytes=found.table,
        slot_bytes=found.slots,
        temporary_bytes=found.temporaries,
        copy_bytes=found.copy,
        peak_bytes=found.peak,
        checkpoint_bytes=found.table + found.slots,
        ways=[
            over_link(way, given.link_bytes_per_s)
            for way in ways_out(table, shares, compiled=compiled)
        ],
        times=times,
        times_missing=times_missing,
    )


def _rest(keras: KerasUse | None, tables: list[TablePlan]) -> ModelRest | None:
    """A table that is no variable of the model leaves nothing less of it."""
    if keras is None or keras.variable_bytes is None or keras.trainable_bytes is None:
        return None
    trained = sum(one.table_bytes for one in tables if one.trainable)
    slots = (keras.optimizer_bytes or 0) - sum(one.slot_bytes for one in tables)
    return ModelRest(
        variable_bytes=max(0, keras.variable_bytes - sum(one.table_bytes for one in tables)),
        slot_bytes=max(0, slots),
        gradient_bytes=max(0, keras.trainable_bytes - trained),
    )


def _building(tables: list[TablePlan], rest: ModelRest | None) -> int:
    largest = max((one.table_bytes for one in tables), default=0)
    held = sum(one.table_bytes for one in tables) + (rest.variable_bytes if rest else 0)
    return held + _INITIALISER_TENSORS * largest


def _shared_zeros(tables: list[Embedding]) -> int:
    """What slots start from: those of one shape share a constant, as calls of TensorFlow's CPU
    allocator have shown (2.21).

    The first write to each copies it, and the last of these copies frees it. Whether that is while
    temporaries are there depends on which updates run side by side.
    """
    sharing: dict[tuple[int, int, str], int] = defaultdict(int)
    sizes = {}
    for one in tables:
        shape = (one.rows, one.dim, one.dtype)
        if one.trainable and one.slots and one.slot_bytes == one.slots * one.table_bytes:
            sharing[shape] += one.slots
            sizes[shape] = one.table_bytes
    return sum(sizes[shape] for shape, slots in sharing.items() if slots > 1)


def _rooms(session: Session, given: Given, peak: int) -> list[Room]:
    """A device, where one is given or was seen, holds what is trained; else the host does."""
    rooms = []
    device, basis = given.device_bytes, "given"
    if device is None:
        device, basis = gpu_memory_bytes(session), "measured"
    if device is not None:
        rooms.append(_room("device", device, basis, peak))
    host, basis = given.host_bytes, "given"
    if host is None:
        host, basis = session.environment.memory_bytes, "measured"
    if device is None or given.host_bytes is not None:
        rooms.append(_room("host", host, basis, peak))
    return rooms


def _room(where: str, size: int, basis: str, needed: int) -> Room:
    return Room.model_validate(
        {
            "where": where,
            "bytes": size,
            "basis": basis,
            "needed_bytes": needed,
            "fits": needed <= size,
        }
    )


def _warnings(session: Session, tables: list[TablePlan], *, compiled: bool) -> list[str]:
    said = []
    unread = [one.layer for one in session.embeddings if one.temporary_bytes is None]
    if unread:
        said.append(
            f"The step was not read for {', '.join(unread)}: slots are reckoned from the "
            "optimizer's variables, and what the update makes beside them is not in the sums."
        )
    if compiled:
        said.append(
            "XLA compiles the step: it makes fewer tensors than the graph has, so the temporaries "
            "are at most this."
        )
    for one in tables:
        if one.table_bytes >= _PROTOBUF_LIMIT:
            said.append(
                f"The values of {one.layer} are more than 2 GiB: as a NumPy array that a "
                "tf.function or a function of `map` reads they fail with a ValueError, since "
                "TensorFlow writes such a constant into the graph. As a variable, or as a tensor "
                "made before, they work."
            )
    return said
