"""Memory that grows from epoch to epoch, and what only scatters."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipediag.rules.growth import MEMORY_GROWTH
from pipediag.session.ledger import EpochSeen
from pipediag.session.model import HostSample, Session
from tests.factories import make_host_samples, make_session
from tests.ledgers import make_run
from tests.rules.sessions import only

GIB = 2**30


def with_epochs(held_mb: Sequence[float]) -> Session:
    """A session whose epochs end every second, with a host sample at each end."""
    seen = [EpochSeen(number=n + 1, end_ms=1e3 * n) for n in range(len(held_mb))]
    sample = make_host_samples()[0]
    samples: list[HostSample] = [
        sample.model_copy(
            update={"at_ms": 1e3 * n, "rss_bytes": int(mb * 2**20), "available_bytes": 12 * GIB}
        )
        for n, mb in enumerate(held_mb)
    ]
    ledger = make_run().model_copy(update={"whole_epochs": seen})
    return make_session(run=ledger, host_samples=samples)


@pytest.mark.parametrize(
    ("held_mb", "expected"),
    [
        ([600, 620, 641, 659, 680], "informative"),
        ([600 + 4 * n for n in range(30)], "informative"),
        # Too few epochs, too little, less each time, once, and up and down.
        ([600, 620, 640, 660], "pass"),
        ([600, 605, 610, 615, 620], "pass"),
        ([600, 680, 700, 705, 706], "pass"),
        ([600, 601, 602, 690, 691], "pass"),
        ([600, 700, 640, 720, 760], "pass"),
        ([], "pass"),
    ],
)
def test_memory_that_grows_evenly(held_mb: list[float], expected: str) -> None:
    assert only(MEMORY_GROWTH, with_epochs(held_mb)).status == expected


def test_how_long_the_memory_lasts() -> None:
    found = only(MEMORY_GROWTH, with_epochs([600, 620, 640, 660, 680]))
    assert found.evidence["memory_growth_bytes_per_epoch"] == pytest.approx(20 * 2**20, rel=0.01)
    assert "about 614 more" in found.advice
