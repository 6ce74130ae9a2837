"""What an epoch's first batch waits for, by what stands in the pipeline."""

from __future__ import annotations

from pipediag.facts.pipeline import kind_name, operations, upstream
from pipediag.session.ledger import MAKING, PAUSE, RunPart
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import READERS, RUNS_A_FUNCTION


def with_first_waits_told(session: Session) -> Session:
    """The session whose ledger says, at the diagnosed loop's waits, what goes on meanwhile."""
    run, loop, found = session.run, session.diagnosed_loop(), _meanwhile(session)
    if run is None or loop is None or found is None:
        return session
    words, op = found
    told = {"waits_for": words, "waits_for_file": op.file, "waits_for_line": op.line}
    parts = [row.model_copy(update=told) if _is_a_wait(row, loop.id) else row for row in run.parts]
    return session.model_copy(update={"run": run.model_copy(update={"parts": parts})})


def _is_a_wait(row: RunPart, loop_id: str) -> bool:
    ours = (row.part, row.loop_id) == ("epoch_start", loop_id)
    return ours and row.what not in (MAKING, PAUSE) and row.line is not None


def _meanwhile(session: Session) -> tuple[str, Operation] | None:
    """A shuffle of what is made before what else has to start, as it hands nothing on until it is
    full. One of names or numbers is full at once."""
    for shuffle in reversed(operations(session, "shuffle")):
        makers = [op for op in upstream(session, shuffle) if op.kind in RUNS_A_FUNCTION]
        if makers:
            costliest = max(makers, key=lambda op: op.latency_ms_per_step or 0.0)
            return f"{kind_name(shuffle)} fills with what {kind_name(costliest)} makes", shuffle
    generators = operations(session, "from_generator")
    if generators:
        return f"the generator of {kind_name(generators[0])} starts", generators[0]
    readers = operations(session, *READERS)
    return (f"{kind_name(readers[0])} opens its files", readers[0]) if readers else None
