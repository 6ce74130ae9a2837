"""Rows of the ledger: places that take next to nothing join what they are a part of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipediag.measures.run.places import Place
from pipediag.measures.run.projected import Projected

_SMALLEST_PERCENT = 0.2
"""Own choice: under it a row tells nobody anything."""


def without_the_smallest(whole: Mapping[Place, Projected]) -> dict[Place, Projected]:
    """The same time in fewer places: small ones are added to the row of their part."""
    limit = _SMALLEST_PERCENT / 100.0 * sum(one.ns for one in whole.values())
    joined: dict[Place, Projected] = {}
    for place, one in whole.items():
        small = place.what is not None and one.ns < limit
        key = replace(place, what=None, file=None, line=None) if small else place
        joined[key] = joined[key].together(one) if key in joined else one
    return joined
