from __future__ import annotations

import pytest

from pipediag.measures.run import places as spans
from pipediag.session.ledger import RunSpan
from tests.measures.run.runs import Written, fit_loop, ledger, recording_of
from tests.measures.run.test_ledger import three_epochs


def seen(written: Written) -> list[RunSpan]:
    return ledger(written, recording_of(fit_loop(epochs=3, steps=501)), 20.4).spans


def test_what_was_seen_is_there_in_order_without_a_hole() -> None:
    found = seen(three_epochs())

    ends = [span.start_ms + span.duration_ms for span in found]
    assert [span.start_ms for span in found[1:]] == pytest.approx(ends[:-1])
    assert sum(span.duration_ms for span in found) == pytest.approx(20_400)
    assert [span.part for span in found[:3]] == ["startup", None, "before_training"]
    assert [span.part for span in found].count("evaluation") == 3
    callback = next(span for span in found if span.what == "the callback Saves")
    assert callback.duration_ms == pytest.approx(200)


def test_it_counts_from_where_steps_count(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recording_of(fit_loop(epochs=3, steps=501))
    run = ledger(three_epochs(), recording, 20.4)

    assert run.spans[0].start_ms == pytest.approx(-recording.started_ns / 1e6)


def test_of_very_many_the_longest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    all_of_them = seen(three_epochs())
    monkeypatch.setattr(spans, "MOST_SPANS", 3)
    run = ledger(three_epochs(), recording_of(fit_loop(epochs=3, steps=501)), 20.4)

    assert len(run.spans) == 3
    shortest_kept = min(span.duration_ms for span in run.spans)
    left_out = [span for span in all_of_them if span not in run.spans]
    assert all(span.duration_ms <= shortest_kept for span in left_out)
    assert run.spans == sorted(run.spans, key=lambda span: span.start_ms)
