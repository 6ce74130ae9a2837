"""Memory and steps that grow from epoch to epoch, and what only scatters."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipediag.rules.growth import MEMORY_GROWTH, SLOWER_STEPS
from pipediag.session.ledger import EpochSeen
from pipediag.session.model import HostSample, Session
from tests.factories import make_host_samples, make_session
from tests.ledgers import make_run
from tests.rules.sessions import run

GIB = 2**30


def with_epochs(steps_ms: Sequence[float] = (), held_mb: Sequence[float] = ()) -> Session:
    """A session whose epochs end every second, with a host sample at each end."""
    count = len(steps_ms) or len(held_mb)
    seen = [
        EpochSeen(number=n + 1, end_ms=1e3 * n, steps_ms=steps_ms[n] if steps_ms else 900.0)
        for n in range(count)
    ]
    sample = make_host_samples()[0]
    samples: list[HostSample] = [
        sample.model_copy(
            update={"at_ms": 1e3 * n, "rss_bytes": int(mb * 2**20), "available_bytes": 12 * GIB}
        )
        for n, mb in enumerate(held_mb)
    ]
    ledger = make_run().model_copy(update={"whole_epochs": seen})
    return make_session(run=ledger, host_samples=samples)


def informs(session: Session) -> list[str]:
    found = [*run(MEMORY_GROWTH, session), *run(SLOWER_STEPS, session)]
    return [one.rule for one in found if one.status == "informative"]


@pytest.mark.parametrize(
    ("held_mb", "expected"),
    [
        ([600, 620, 641, 659, 680], ["memory-growth"]),
        ([600 + 4 * n for n in range(30)], ["memory-growth"]),
        # Too few epochs, too little, less each time, once, and up and down.
        ([600, 620, 640, 660], []),
        ([600, 605, 610, 615, 620], []),
        ([600, 680, 700, 705, 706], []),
        ([600, 601, 602, 690, 691], []),
        ([600, 700, 640, 720, 760], []),
        ([], []),
    ],
)
def test_memory_that_grows_evenly(held_mb: list[float], expected: list[str]) -> None:
    assert informs(with_epochs(held_mb=held_mb)) == expected


def test_how_long_the_memory_lasts() -> None:
    (found,) = run(MEMORY_GROWTH, with_epochs(held_mb=[600, 620, 640, 660, 680]))
    assert found.evidence["memory_growth_bytes_per_epoch"] == pytest.approx(20 * 2**20, rel=0.01)
    assert "about 614 more" in found.advice


GROWING = [
    *(348, 824, 768, 662, 632, 595, 505, 739, 601, 785, 937, 927, 842, 1041, 1003, 1125, 1080),
    *(777, 986, 797, 1240, 1163, 1304, 1383, 1102, 620, 667, 1211, 699, 1085, 1246, 1594),
    *(1513, 1578, 1728, 1934, 1692),
]
"""Measured on a busy machine: a metric over all batches so far."""
THE_SAME = [
    *(1433, 1665, 1818, 1459, 1623, 2071, 1856, 2033, 1544, 1637, 1644, 1549, 1977, 2493),
    *(1986, 1448, 1626, 1646, 1767, 1571, 2219, 2047, 8984, 7119, 2173, 2294, 2446),
]
"""Measured there at the same time: a `fit`."""


@pytest.mark.parametrize(
    ("steps_ms", "expected"),
    [
        ([100, 110, 120, 130, 140], ["slower-steps"]),
        (GROWING, ["slower-steps"]),
        (THE_SAME, []),
        ([100, 110, 120, 130], []),
        ([100, 104, 108, 112, 116], []),
        ([100, 110, 105, 130, 140], []),
        # The first stretch and the last one overlap, or just don't.
        ([100, 160, 140, 140, 150, 150, 160, 160, 150, 300], []),
        ([100, 160, 140, 140, 150, 150, 160, 160, 161, 300], ["slower-steps"]),
    ],
)
def test_steps_that_get_slower(steps_ms: list[float], expected: list[str]) -> None:
    assert informs(with_epochs(steps_ms)) == expected
