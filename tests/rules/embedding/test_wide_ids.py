from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.embedding import wide_ids as rule
from pipediag.session.findings import Finding
from tests.factories import make_embedding, make_loop, make_session
from tests.records import make_breakdown
from tests.rules.embedding.sessions import make_ids, unseen
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import only


def finding_with(
    megabytes: float = 4.0, copied: float = 30.0, tables: int = 1, **overrides: Any
) -> Finding:
    """Ids of so many tables, all the same, which would take so much less; copies of that share."""
    ids = make_ids(**{"lookups_per_step": megabytes * 1e6 / 4, **overrides.pop("ids", {})})
    values: dict[str, Any] = {
        "loops": [make_loop()],
        "embeddings": [make_embedding(layer=f"table_{i}", ids=ids) for i in range(tables)],
        "breakdown": make_breakdown(input_wait=1.0, device_copy=copied),
    }
    return only(rule, make_session(**{**values, **overrides}))


def test_ids_of_eight_bytes_that_a_device_is_sent() -> None:
    finding = finding_with()

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert finding.advice.startswith('Cast ids of `table_0` to "int32"')
    assert "They come in 8 bytes: 4.0 MB of a step are zeros." in finding.advice
    assert finding.trial.reason is not None


def test_ids_of_four_bytes_pass() -> None:
    assert finding_with(ids={"dtype": "int32"}).status == "pass"


def test_tables_that_are_looked_up_by_the_same_ids_count_once() -> None:
    assert finding_with(tables=3).evidence["saved_megabytes_per_step"] == 4.0


def test_other_ids_count_too() -> None:
    both = [
        make_embedding(ids=make_ids(lookups_per_step=500_000.0, largest=largest))
        for largest in (7, 8)
    ]
    assert finding_with(embeddings=both).evidence["saved_megabytes_per_step"] == 4.0


def test_where_copies_take_little_it_informs() -> None:
    finding = finding_with(copied=1.0)
    assert finding.status == "informative"
    assert "copies to the device take only 1.0 % of the step" in finding.advice


def test_while_input_waits_that_comes_first() -> None:
    finding = finding_with(breakdown=make_breakdown(input_wait=60.0, device_copy=30.0))
    assert finding.status == "informative"


def test_without_ids() -> None:
    assert only(rule, unseen()).status == "inconclusive"
    assert finding_with(embeddings=[]).status == "not-applicable"


LIMITS = [
    Limit(rule, rule.SAVED, finding_with, "fail", "pass"),
    Limit(rule, rule.COPIED, lambda copied: finding_with(copied=copied), "fail", "informative"),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_a_limit(limit: Limit) -> None:
    stands(limit)
