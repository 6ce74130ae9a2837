"""Ids that are not what was meant: outside the table, rounded by a float type, or masked."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.embedding_ids import COLLIDING_IDS, IDS_OUTSIDE_TABLE, MASKED_TOKEN
from pipediag.rules.rule import Rule
from pipediag.session.model import Script, Session
from tests.factories import make_embedding, make_loop, make_session
from tests.rules.sessions import cases, make_ids, only

ERROR = (
    "InvalidArgumentError: Graph execution error: Detected at node GatherV2 ... "
    "indices[3,0] = 1000 is not in [0, 1000) [[{{node GatherV2}}]]"
)


def looked_at(table: dict[str, Any] | None = None, **ids: Any) -> Session:
    """A session with a table of 1,000 rows."""
    return make_session(embeddings=[make_embedding(**(table or {}), ids=make_ids(**ids))])


def cast(through: str | None, rows: int, **ids: Any) -> Session:
    return looked_at({"rows": rows}, cast_through=through, cast_from="int64", **ids)


MASKED = {"mask_zero": True}
OUTSIDE = {"largest": 1_200, "outside": 3, "outside_examples": [(42, 1_000), (47, 1_200)]}
NEGATIVE = {"smallest": -1, "outside": 1, "outside_examples": [(42, -1)]}
CHANGED = {"changed": 400, "changed_examples": [(257, 256), (642, 640)], "collided": 200}


@cases(
    {
        "outside": (IDS_OUTSIDE_TABLE, looked_at(**OUTSIDE), "fail"),
        "negative": (IDS_OUTSIDE_TABLE, looked_at(**NEGATIVE), "fail"),
        "within": (IDS_OUTSIDE_TABLE, looked_at(smallest=0, largest=999), "pass"),
        "changed": (COLLIDING_IDS, cast("bfloat16", 1000, **CHANGED), "fail"),
        "bfloat16": (COLLIDING_IDS, cast("bfloat16", 257), "pass"),
        "bfloat16, one more": (COLLIDING_IDS, cast("bfloat16", 258), "fail"),
        "float32": (COLLIDING_IDS, cast("float32", 16_777_217), "pass"),
        "float32, one more": (COLLIDING_IDS, cast("float32", 16_777_218), "fail"),
        "unknown float": (COLLIDING_IDS, cast("float8_e4m3fn", 1_000_000), "pass"),
        "no float": (COLLIDING_IDS, cast(None, 100_000_000), "pass"),
        "few zeros within": (MASKED_TOKEN, looked_at(MASKED, zeros_within=7), "pass"),
        "zeros within": (MASKED_TOKEN, looked_at(MASKED, zeros_within=8), "fail"),
        "a token": (MASKED_TOKEN, looked_at(MASKED, zero_is_a_token=True), "fail"),
        "no token": (MASKED_TOKEN, looked_at(MASKED, zero_is_a_token=False), "pass"),
        "no mask": (MASKED_TOKEN, looked_at(zeros_within=500), "pass"),
    },
    "rule, session, status",
)
def test_ids_that_a_batch_holds(rule: Rule, session: Session, status: str) -> None:
    finding = only(rule, session)
    assert finding.status == status
    assert finding.about_results
    if status == "fail":
        reachable = rule is COLLIDING_IDS and not finding.evidence["changed"]
        assert finding.severity == ("warn" if reachable else "error")


@pytest.mark.parametrize("loops", [[make_loop(steps=7)], []])
def test_the_error_that_ended_the_script_tells_too(loops: list[Any]) -> None:
    script = Script(path="train.py", args=[], status=1, outcome="raised", detail=ERROR)
    session = make_session(script=script, loops=loops, embeddings=[make_embedding()])
    finding = only(IDS_OUTSIDE_TABLE, session)
    assert finding.status == "fail"
