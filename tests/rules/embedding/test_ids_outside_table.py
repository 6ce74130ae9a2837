from __future__ import annotations

from pipediag.rules.embedding import ids_outside_table
from pipediag.session.run import Script
from tests.factories import make_embedding, make_loop, make_session
from tests.rules.embedding.sessions import looked_at, unseen
from tests.rules.sessions import only

ERROR = (
    "InvalidArgumentError: Graph execution error: Detected at node GatherV2 ... "
    "indices[3,0] = 1000 is not in [0, 1000) [[{{node GatherV2}}]]"
)


def test_ids_past_the_last_row_are_named_with_their_batch() -> None:
    finding = only(
        ids_outside_table,
        looked_at(largest=1_200, outside=3, outside_examples=[(42, 1_000), (47, 1_200)]),
    )

    assert (finding.status, finding.severity, finding.about_results) == ("fail", "error", True)
    assert "rows 0 to 999" in finding.advice
    assert "1000 in batch 42, 1200 in batch 47" in finding.advice
    assert "A GPU gives zeros" in finding.advice


def test_negative_ids_are_another_row_in_keras() -> None:
    session = looked_at(smallest=-1, outside=3, outside_examples=[(42, -1)])

    assert "from the end of the table" in only(ids_outside_table, session).advice


def test_ids_within_pass() -> None:
    assert only(ids_outside_table, looked_at(smallest=0, largest=999)).status == "pass"


def test_the_error_that_ended_the_script_tells_too() -> None:
    script = Script(path="train.py", args=[], status=1, outcome="raised", detail=ERROR)
    loops = [make_loop(steps=7)]
    session = make_session(script=script, loops=loops, embeddings=[make_embedding()])
    finding = only(ids_outside_table, session)

    assert finding.status == "fail"
    assert finding.advice.startswith(
        "Make the table larger, or mend the ids. "
        "The script ended in batch 7 of its loop because id 1000 was looked up in `embedding`"
    )
    assert finding.evidence["known_from"] == "the script's error"
    unknown = only(ids_outside_table, make_session(script=script, loops=[]))
    assert "The script ended because id 1000 was looked up in a table of 1000 rows" in (
        unknown.advice
    )


def test_where_nothing_was_seen() -> None:
    assert only(ids_outside_table, unseen()).advice == "A loop."
    assert only(ids_outside_table, unseen(ids_missing=None)).status == "inconclusive"
    assert only(ids_outside_table, make_session()).status == "not-applicable"
