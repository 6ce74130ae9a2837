"""What a limit says holds from the limit on: rules of this folder at it, and just short of it."""

from __future__ import annotations

import pytest

from pipediag.facts.limits import (
    INPUT_BOUND,
    INPUT_WAIT,
    OPERATION_SHARE,
)
from pipediag.rules.pipeline import (
    debug_mode,
    missing_cache,
    per_element_map,
    sequential_files,
    slow_shuffle_fill,
)
from pipediag.rules.relevance import input_first, weigh
from pipediag.session.model import Session
from pipediag.session.steps import Share
from tests.factories import (
    make_host,
    make_keras,
    make_loop,
    make_session,
)
from tests.records import (
    make_breakdown,
    make_environment,
    make_function,
    make_operation,
    make_steps,
)
from tests.rules.limits import SHORT_OF_IT, Limit, names_of, stands
from tests.rules.sessions import batch, only, session_of, source


def waiting_for_input(low: float) -> Session:
    """The step's wait for input, whose interval begins there."""
    share = Share(ms=low / 10, percent=low + 1, ci95_percent=(low, low + 2))
    breakdown = {**make_breakdown(), "input_wait": share}
    environment = make_environment(tf_data_debug_mode=True)
    return make_session(breakdown=breakdown, environment=environment)


def filling(share: float, projected_s: float | None = 20.0) -> Session:
    """A buffer whose fill takes that part of the loop, in percent, or so many of its steps."""
    fill_ms = share * 10.0 if projected_s is None else share * 10.0 * projected_s
    work = make_operation("map", "map", elements=1.0, self_ms_per_step=fill_ms / 1000)
    op = make_operation("shuffle", "shuffle", line=8, parameters={"buffer_size": 1000})
    loop = make_loop(projected_s=projected_s, keras=make_keras(epochs=1))
    first = source(self_ms_per_step=0.0, elements=1.0)
    return session_of(first, work, op, batch(), steps=make_steps(fill_ms=fill_ms), loops=[loop])


def cached(memory_percent: float = 1.0, disk_percent: float | None = None) -> Session:
    """A map whose results take so much of the memory, and of the disk."""
    size = 10_000 * 1000
    memory = int(size / memory_percent * 100)
    free = None if disk_percent is None else int(size / disk_percent * 100)
    op = make_operation(
        "map", elements=32.0, self_ms_per_step=8.0, element_bytes=1000, function=make_function()
    )
    return session_of(
        source(),
        op,
        batch(),
        loops=[make_loop(keras=make_keras(epochs=10))],
        host=make_host(available_bytes=memory),
        environment=make_environment(free_disk_bytes=free),
    )


def read_files(from_disk_percent: float) -> Session:
    """The reader delivers 3.2 MB/s."""
    op = make_operation(
        "reader",
        "TFRecordDataset",
        elements=32.0,
        self_ms_per_step=8.0,
        bytes_per_element=1000.0,
        parameters={"file_count": 10},
    )
    host = make_host(read_bytes_per_s=3.2e6 * from_disk_percent / 100)
    return session_of(op, batch(), host=host)


def mapped(elements: float = 256.0, us_each: float = 20.0) -> Session:
    op = make_operation(
        "map",
        elements=elements,
        self_ms_per_step=us_each * elements / 1000,
        function=make_function(graph_ops={"Cast": 1}),
    )
    return session_of(source(elements=elements), op, batch(256))


LIMITS = [
    Limit(
        debug_mode,
        INPUT_WAIT,
        lambda low: only(debug_mode, waiting_for_input(low)),
        "fail",
        "informative",
    ),
    Limit(
        slow_shuffle_fill,
        slow_shuffle_fill.FILL_SHARE,
        lambda share: only(slow_shuffle_fill, filling(share)),
        "fail",
        "pass",
    ),
    Limit(
        slow_shuffle_fill,
        slow_shuffle_fill.FILL_STEPS,
        lambda steps: only(slow_shuffle_fill, filling(steps, projected_s=None)),
        "fail",
        "pass",
    ),
    Limit(
        sequential_files,
        sequential_files.FROM_DISK,
        lambda percent: only(sequential_files, read_files(percent)),
        "fail",
        "informative",
    ),
    Limit(
        per_element_map,
        per_element_map.ELEMENTS,
        lambda count: only(per_element_map, mapped(count, us_each=100.0)),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_it_holds_from_the_limit_on(limit: Limit) -> None:
    stands(limit)


def test_what_is_exactly_as_large_as_allowed_fits() -> None:
    assert only(missing_cache, cached(50.0)).advice.startswith("Put `.cache()`")
    assert "on a fast disk" in only(missing_cache, cached(50.1, 50.0)).advice
    assert only(missing_cache, cached(50.1, 50.1)).status == "informative"
    assert only(missing_cache, cached(50.1)).status == "informative"


def test_a_call_of_exactly_the_limit_is_short() -> None:
    limit = per_element_map.ELEMENT_TIME.value
    assert only(per_element_map, mapped(us_each=limit)).status == "fail"
    longer = only(per_element_map, mapped(us_each=1.001 * limit))
    assert (longer.status, longer.edit is not None) == ("informative", True)


def test_an_operation_counts_from_its_share_of_the_step_on() -> None:
    session = session_of(source(), batch())
    delay = OPERATION_SHARE.value / 100.0 * 10.0
    assert weigh(session, source(), delay).status == "fail"
    weight = weigh(session, source(), SHORT_OF_IT * delay)
    assert weight.status == "informative"
    assert weight.sentence == (
        "It takes only 5.0 % of the step: the input wait comes from elsewhere."
    )


def test_input_comes_first_from_its_limit_on() -> None:
    assert input_first(waiting_for_input(INPUT_BOUND.value)) is not None
    assert input_first(waiting_for_input(SHORT_OF_IT * INPUT_BOUND.value)) is None
