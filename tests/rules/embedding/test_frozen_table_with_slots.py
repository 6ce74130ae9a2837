from __future__ import annotations

from typing import Any

from pipediag.rules.embedding import frozen_table_with_slots as rule
from pipediag.session.findings import Finding
from tests.factories import make_embedding, make_session
from tests.rules.limits import Limit, stands
from tests.rules.sessions import only

FROZEN = {
    "table_bytes": 128_000_000,
    "slot_bytes": 0,
    "trainable": False,
    "idle_slot_bytes": 256_000_000,
}


def finding_with(**overrides: Any) -> Finding:
    return only(rule, make_session(embeddings=[make_embedding(**{**FROZEN, **overrides})]))


def test_slots_of_a_table_that_was_frozen_later() -> None:
    finding = finding_with()

    assert (finding.status, finding.severity) == ("informative", "info")
    assert "still holds 256 MB for it" in finding.advice


def test_one_that_was_frozen_before_its_optimizer_was_built_passes() -> None:
    assert finding_with(idle_slot_bytes=0).status == "pass"


def test_a_table_that_is_trained_does_not_count() -> None:
    assert finding_with(trainable=True, idle_slot_bytes=None).status == "not-applicable"
    assert finding_with(table_bytes=1_000_000).status == "not-applicable"


def test_an_optimizer_that_does_not_tell() -> None:
    assert finding_with(idle_slot_bytes=None).status == "inconclusive"


def test_its_limit() -> None:
    stands(
        Limit(
            rule,
            rule.LARGE,
            lambda megabytes: finding_with(idle_slot_bytes=int(megabytes * 1e6)),
            "informative",
            "pass",
        )
    )
