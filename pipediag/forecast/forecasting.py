"""The forecast of an edit from a session."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipediag.forecast.calibration import network_of
from pipediag.forecast.changes import apply
from pipediag.forecast.network import Limit, Network, step
from pipediag.forecast.unknown import UnknownError
from pipediag.session.edits import Edit
from pipediag.session.model import Session

SAME = 1.1
"""Two forecasts that differ by less tell a reader the same."""


@dataclass(frozen=True)
class Forecast:
    """What an edit is expected to buy, in the state in which a trial measures it."""

    speedup: float | None
    """Examples per second with the edit over those without."""
    missing: str | None
    """Why there is none, as a sentence."""
    limit: Limit | None
    """What sets the step with the edit: the pipeline, the consumer, or CPUs and the lock."""


def forecast(session: Session, edit: Edit) -> Forecast:
    """The speed-up of an edit, with caches full and buffers in their steady state.

    Assumes that service times stay what they were unless the edit changes them; that parallel
    calls divide them; that a consumer which was slowed by the pipeline's CPU time is slowed in
    proportion to what is left of it. A figure that would hang on something unmeasured (whether
    Python holds the interpreter lock, what a disk gives to several readers) is left out.
    """
    try:
        return _forecast(session, edit)
    except UnknownError as unknown:
        return Forecast(None, str(unknown), None)


def _forecast(session: Session, edit: Edit) -> Forecast:
    if edit.loop_id is not None:
        raise UnknownError("It changes the pipeline of another loop, which was not measured.")
    network = after = network_of(session)
    for change in edit.changes:
        after = apply(after, change, session)
    bound = step(after, network)
    if bound.ms <= 0:
        raise UnknownError("The step is input wait alone; what remains of it can't be told.")
    if bound.ms > SAME * step(_unlocked(after), _unlocked(network)).ms:
        raise UnknownError("Whether its Python holds the interpreter lock is not known.")
    return Forecast(round(network.step_ms / bound.ms, 3), None, bound.limit)


def _unlocked(network: Network) -> Network:
    free = {id: replace(s, holds_lock=False) for id, s in network.stations.items()}
    return replace(network, stations=free)
