from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import slow_shuffle_fill
from pipediag.rules.pipeline.smaller_buffer import smaller_buffer, smaller_size
from pipediag.session.edits import Edit, Move, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_keras, make_loop, make_session
from tests.records import make_operation, make_steps
from tests.rules.sessions import batch, only, session_of, source


def shuffle(buffer: int = 1000) -> Operation:
    return make_operation("shuffle", "shuffle", line=8, parameters={"buffer_size": buffer})


def slow_map(**overrides: Any) -> Operation:
    # 0.25 ms an element: a buffer of 1000 takes 250 ms.
    values: dict[str, Any] = {"elements": 32.0, "self_ms_per_step": 8.0}
    return make_operation("map", "map", **{**values, **overrides})


def session_with(
    *ops: Operation, fill_ms: float | None = 250.0, projected_s: float | None = 2.5
) -> Session:
    loop = make_loop(projected_s=projected_s, keras=make_keras(epochs=2))
    chain = ops or (source(self_ms_per_step=0.0), slow_map(), shuffle(), batch())
    return session_of(*chain, steps=make_steps(fill_ms=fill_ms), loops=[loop])


def test_fails_and_predicts_over_the_whole_loop() -> None:
    finding = only(slow_shuffle_fill, session_with())
    assert finding.status == "fail"
    assert "Move `shuffle` at line 8 above `map` at line 12" in finding.advice
    # Two fills of 0.25 s in 2.5 s.
    assert finding.speedup_at_most == pytest.approx(1.25)
    assert finding.evidence["estimated_fill_ms"] == pytest.approx(250.0)


def test_unknown_length_is_judged_in_steps() -> None:
    assert only(slow_shuffle_fill, session_with(projected_s=None)).status == "pass"
    finding = only(
        slow_shuffle_fill,
        session_with(
            source(self_ms_per_step=0.0),
            slow_map(),
            shuffle(8000),
            batch(),
            fill_ms=2000.0,
            projected_s=None,
        ),
    )
    assert finding.status == "fail"


def test_a_generator_should_shuffle_itself() -> None:
    generator = make_operation("gen", "from_generator", elements=32.0, self_ms_per_step=8.0)
    finding = only(slow_shuffle_fill, session_with(generator, shuffle(), batch()))
    assert finding.status == "fail"
    assert "shuffle indices itself" in finding.advice


def test_without_costly_work_above_it_only_informs() -> None:
    session = session_with(source(self_ms_per_step=8.0), shuffle(), batch())
    assert only(slow_shuffle_fill, session).status == "informative"


def test_a_smaller_buffer_is_tried_in_whole_epochs_where_nothing_can_be_moved() -> None:
    """A tenth of 4000, as that holds eight batches of 32 and a hundredth of the data."""
    cheap = session_with(source(self_ms_per_step=8.0), shuffle(4000), batch(), fill_ms=1000.0)
    finding = only(slow_shuffle_fill, cheap)
    assert "a buffer of 400 fills sooner and shuffles less" in finding.advice
    assert finding.edit == Edit(
        id="slow-shuffle-fill:buffer:shuffle",
        label="a buffer of 400 for the shuffle in line 8",
        changes=(SetParameters("shuffle", {"buffer_size": 400}),),
        check="shape",
        caveat="It counts time; how well the model learns from data that is mixed less is not "
        "measured.",
        whole_epoch=True,
    )
    assert finding.effect_on_results == "changes a hyper-parameter"


def test_behind_a_generator_a_smaller_buffer_is_tried() -> None:
    generator = make_operation("gen", "from_generator", elements=32.0, self_ms_per_step=8.0)
    session = session_with(generator, shuffle(4000), batch(), fill_ms=1000.0)
    finding = only(slow_shuffle_fill, session)
    assert finding.status == "fail"
    assert "Until then, a buffer of 400 fills sooner" in finding.advice
    assert finding.edit is not None
    assert finding.edit.changes == (SetParameters("shuffle", {"buffer_size": 400}),)
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert finding.speedup_at_most == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("buffer", "data", "size", "edited"),
    [
        (4000, 10_000, 32, 400),
        # Eight batches of 100.
        (4000, 10_000, 100, 800),
        # A hundredth of the data.
        (4000, 100_000, 32, 1000),
        # A buffer holds no more than there is.
        (100_000, 6000, 32, 600),
        # Half of it saves too little to mix less for.
        (500, 10_000, 32, None),
        (511, 10_000, 32, None),
        (512, 10_000, 32, 256),
    ],
)
def test_how_much_smaller(buffer: int, data: int, size: int, edited: int | None) -> None:
    session = session_of(source(cardinality=data), shuffle(buffer), batch(size))
    op = session.operation("shuffle")
    assert op is not None
    assert smaller_size(session, op) == edited


def test_without_a_batch_behind_it_no_size_is_known() -> None:
    session = session_of(source(), shuffle(4000))
    op = session.operation("shuffle")
    assert op is not None
    assert smaller_buffer(session, op, "rule") is None


@pytest.mark.parametrize(
    "session",
    [
        session_with(fill_ms=20.0),
        session_with(projected_s=600.0),
        session_with(
            source(self_ms_per_step=None),
            slow_map(removed_by_tensorflow=True, self_ms_per_step=None),
            shuffle(),
            batch(),
        ),
        # The wait is start-up: 250 ms of filling explain little of 5 s.
        session_with(fill_ms=5000.0),
    ],
)
def test_near_misses_pass(session: Session) -> None:
    assert only(slow_shuffle_fill, session).status == "pass"


def test_unmeasured_costs_are_inconclusive() -> None:
    nothing = {"self_ms_per_step": None}
    session = session_with(source(**nothing), slow_map(**nothing), shuffle(), batch())
    finding = only(slow_shuffle_fill, session)
    assert (finding.status, finding.edit is not None) == ("informative", True)
    cheap = session_with(source(**nothing), shuffle(), batch())
    assert only(slow_shuffle_fill, cheap).status == "pass"


def test_a_wait_is_a_fill_where_only_the_shuffle_runs_on() -> None:
    """In the one epoch that was seen: tf.data knows no costs of what has run out."""
    nothing = {"self_ms_per_step": None}
    above = (source(**nothing), slow_map(**nothing))
    session = session_with(*above, shuffle(), batch(), fill_ms=500.0, projected_s=5.0)
    finding = only(slow_shuffle_fill, session)
    assert finding.status == "fail"
    assert finding.speedup_at_most == pytest.approx(1.25)
    unknown = shuffle().model_copy(update=nothing)
    session = session_with(*above, unknown, batch(), fill_ms=500.0, projected_s=5.0)
    finding = only(slow_shuffle_fill, session)
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_missing_data() -> None:
    assert only(slow_shuffle_fill, session_with(fill_ms=None)).status == "inconclusive"
    assert only(slow_shuffle_fill, session_of(source(), batch())).status == "not-applicable"
    assert only(slow_shuffle_fill, make_session(steps=None)).status == "inconclusive"


def test_the_shuffle_is_tried_above_the_map_in_whole_epochs() -> None:
    finding = only(slow_shuffle_fill, session_with())
    assert finding.effect_on_results == "same up to order or rounding"
    assert finding.edit is not None
    assert finding.edit.changes == (Move("shuffle", "source"),)
    assert finding.edit.whole_epoch


def test_a_shuffle_stays_behind_what_hands_on_other_elements() -> None:
    parts = make_operation("parts", "flat_map", line=13)
    first = source(self_ms_per_step=0.0)
    session = session_with(first, slow_map(), parts, shuffle(500), batch())
    finding = only(slow_shuffle_fill, session)
    assert finding.status == "fail"
    assert finding.edit is None
    assert "can't be moved above" in str(finding.trial.reason)


def test_of_several_shuffles_the_longest_fill_is_meant() -> None:
    short = make_operation("short", "shuffle", line=7, parameters={"buffer_size": 10})
    behind = make_operation("behind", "shuffle", line=8, parameters={"buffer_size": 20})
    long_one = shuffle()
    first = source(self_ms_per_step=0.0)
    session = session_with(first, slow_map(), short, long_one, behind, batch())
    assert only(slow_shuffle_fill, session).op_id == "shuffle"


@pytest.mark.parametrize(("fill_ms", "status"), [(1000.0, "fail"), (1001.0, "informative")])
def test_filling_has_to_explain_its_part_of_the_wait(fill_ms: float, status: str) -> None:
    """300 ms of filling."""
    session = session_with(
        source(self_ms_per_step=0.0), slow_map(), shuffle(1200), batch(), fill_ms=fill_ms
    )
    assert only(slow_shuffle_fill, session).status == status


def test_a_buffer_fills_with_no_more_than_there_is() -> None:
    first = source(self_ms_per_step=0.0, cardinality=500)
    few = slow_map(cardinality=500)
    finding = only(slow_shuffle_fill, session_with(first, few, shuffle(1000), batch()))
    assert finding.evidence["estimated_fill_ms"] == 125.0


def test_fills_that_seem_longer_than_the_loop_leave_a_twentieth() -> None:
    finding = only(slow_shuffle_fill, session_with(projected_s=0.1))
    assert finding.evidence["fill_percent_of_loop"] == 95.0
    assert finding.speedup_at_most == 20.0


def test_the_costliest_map_above_the_buffer_is_the_one_to_shuffle_before() -> None:
    cheap = make_operation("cheap", "map", line=3, elements=32.0, self_ms_per_step=0.1)
    for maps in ((cheap, slow_map()), (slow_map(), cheap)):
        session = session_with(source(self_ms_per_step=0.0), *maps, shuffle(), batch())
        assert "above `map` at line 12" in only(slow_shuffle_fill, session).advice
