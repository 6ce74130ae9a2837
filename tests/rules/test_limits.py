"""Rules at their limits, from which on they hold, and just short of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipediag.facts.embeddings import LARGE
from pipediag.facts.limits import (
    INPUT_BOUND,
    INPUT_GAPS,
    INPUT_WAIT,
    OPERATION_SHARE,
    PERTURBED,
    Threshold,
)
from pipediag.rules import device_idle, gpu, step_overhead
from pipediag.rules.caching import MISSING_CACHE
from pipediag.rules.defaults import DEBUG_MODE
from pipediag.rules.device_idle import (
    INPUT_GAP,
    LAUNCH_BOUND,
    PYTHON_GAP,
    SYNC_POINT,
)
from pipediag.rules.embeddings import DENSE_EMBEDDING_UPDATE
from pipediag.rules.evaluation import COSTLY_EVALUATION
from pipediag.rules.evaluation import OFTEN as EVALUATED_OFTEN
from pipediag.rules.gpu import DEVICE_STRAGGLER, EXPOSED_HOST_COPY, MIXED_PRECISION
from pipediag.rules.maps import ELEMENT_TIME, ELEMENTS, PER_ELEMENT_MAP
from pipediag.rules.model_inputs import AT_MOST, PADDING
from pipediag.rules.python_in_step import BATCH_CALLBACK, CALLBACK_SHARE
from pipediag.rules.reading import FROM_DISK, SEQUENTIAL_FILES
from pipediag.rules.relevance import NOTABLE, RELEVANT, SHORT, input_first, weigh, weigh_input
from pipediag.rules.rule import Meta
from pipediag.rules.script_work import OFTEN, SLOW_EPOCH_END, SLOW_START
from pipediag.rules.shuffling import FILL_SHARE, FILL_STEPS, SLOW_SHUFFLE_FILL
from pipediag.rules.step_overhead import HOST_OVERHEAD, SMALL_BATCH
from pipediag.rules.tracing import COMPILE, RETRACES, RETRACING
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.loops import Perturbation, Share
from pipediag.session.model import HotLine, Session
from pipediag.session.recorded_loops import Callback
from pipediag.vocabulary import FindingStatus, GapCause, RunPartName
from tests.factories import (
    make_compute_bound_session,
    make_embedding,
    make_host,
    make_keras,
    make_loop,
    make_session,
)
from tests.ledgers import make_part, make_run
from tests.records import (
    make_breakdown,
    make_environment,
    make_function,
    make_input_wait,
    make_operation,
    make_steps,
)
from tests.rules.devices import copies, gap, launches, on_devices, session_on, under_floor
from tests.rules.devices import gpu as a_gpu
from tests.rules.sessions import (
    SHORT_OF_IT,
    Limit,
    batch,
    epochs,
    limits,
    only,
    session_of,
    source,
    stands,
)


def of(
    meta: Meta,
    limit: Threshold,
    session: Callable[[float], Session],
    at: FindingStatus = "fail",
    below: FindingStatus = "informative",
) -> Limit:
    """A limit of a rule on sessions."""
    return Limit(meta, limit, lambda value: only(meta, session(value)), at, below)


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


def cached(memory_percent: float = 1.0) -> Session:
    """A map whose results take so much of the memory."""
    size = 10_000 * 1000
    op = make_operation(
        "map", elements=32.0, self_ms_per_step=8.0, element_bytes=1000, function=make_function()
    )
    return session_of(
        source(),
        op,
        batch(),
        host=make_host(available_bytes=int(size / memory_percent * 100)),
        **epochs(10),
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


HOOK = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])


def in_callback(percent: float) -> Session:
    hot = HotLine(
        file="train.py", line=33, function="on_train_batch_end", percent=percent, thread="main"
    )
    loop = make_loop(keras=make_keras(callbacks=[HOOK]))
    return make_compute_bound_session(loops=[loop], host=make_host(hot_python=[hot]))


def padded(compute: float) -> Session:
    op = make_operation("padded", "padded_batch", line=7, parameters={"batch_size": 32})
    loop = make_loop(element_spec="TensorSpec(shape=(None, None), dtype=tf.int32, name=None)")
    breakdown = make_breakdown(device_compute=compute)
    return session_of(source(), op, breakdown=breakdown, loops=[loop])


def step_of(**shares: float) -> Session:
    return session_of(source(), batch(32), breakdown=make_breakdown(**shares))


def batches_of(size: float) -> Session:
    breakdown, steps = make_breakdown(dispatch=60.0), make_steps(batch_size=int(size))
    return make_session(steps=steps, breakdown=breakdown, pipeline=None)


def table_of(mb: float) -> Session:
    return make_session(embeddings=[make_embedding(table_bytes=int(mb * 1e6), update="dense")])


def before(seconds: float, whole_s: float = 100.0) -> Session:
    row = make_part("before_training", seconds, what="in `read`", file="train.py", line=9)
    return make_session(run=make_run(row, whole_s=whole_s), loops=[make_loop()])


def coming(part: RunPartName) -> Callable[[float], Session]:
    """A fifth of the run, in so many times."""

    def session(times: float) -> Session:
        row = make_part(part, 20.0, what="in `do`", file="train.py", line=40, count=int(times))
        return make_session(run=make_run(row), loops=[make_loop()])

    return session


def perturbed(ratio: float) -> Session:
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=10.0 * ratio, ratio=ratio)
    return session_on(a_gpu({"sync": 20.0}), perturbation=slowed)


@limits(
    [
        of(DEBUG_MODE, INPUT_WAIT, waiting_for_input),
        of(SLOW_SHUFFLE_FILL, FILL_SHARE, filling, below="pass"),
        of(SLOW_SHUFFLE_FILL, FILL_STEPS, lambda steps: filling(steps, None), below="pass"),
        of(SEQUENTIAL_FILES, FROM_DISK, read_files),
        of(PER_ELEMENT_MAP, ELEMENTS, lambda count: mapped(count, us_each=100.0)),
        of(BATCH_CALLBACK, CALLBACK_SHARE, in_callback, below="pass"),
        of(HOST_OVERHEAD, step_overhead.OVERHEAD, lambda part: step_of(python=part)),
        of(
            HOST_OVERHEAD,
            step_overhead.LITTLE,
            lambda part: step_of(python=part),
            "informative",
            "pass",
        ),
        of(SMALL_BATCH, step_overhead.FIXED_COST, lambda part: step_of(dispatch=part)),
        of(SMALL_BATCH, step_overhead.BATCH, batches_of, "pass", "fail"),
        of(PADDING, AT_MOST, padded, "informative", "pass"),
        of(
            RETRACING,
            RETRACES,
            lambda times: make_session(steps=make_steps(retraces=int(times))),
            below="pass",
        ),
        of(RETRACING, COMPILE, lambda part: step_of(compile=part), below="pass"),
        of(DENSE_EMBEDDING_UPDATE, LARGE, table_of, "informative", "pass"),
        of(SLOW_START, RELEVANT, before),
        of(SLOW_START, NOTABLE, before, "informative", "pass"),
        of(SLOW_START, SHORT, lambda seconds: before(seconds, whole_s=4.0)),
        of(COSTLY_EVALUATION, EVALUATED_OFTEN, coming("evaluation")),
        of(SLOW_EPOCH_END, OFTEN, coming("epoch_end")),
        of(SYNC_POINT, PERTURBED, perturbed, "inconclusive", "fail"),
    ]
)
def test_a_session_at_a_limit(limit: Limit) -> None:
    stands(limit)


def test_what_is_exactly_as_large_as_allowed_fits() -> None:
    findings = [only(MISSING_CACHE, session) for session in (cached(50.0), cached(50.1))]
    assert [one.status for one in findings] == ["fail", "informative"]


def test_a_call_of_exactly_the_limit_is_short() -> None:
    limit = ELEMENT_TIME.value
    assert only(PER_ELEMENT_MAP, mapped(us_each=limit)).status == "fail"
    longer = only(PER_ELEMENT_MAP, mapped(us_each=1.001 * limit))
    assert (longer.status, longer.edit is not None) == ("informative", True)


def test_an_operation_counts_from_its_share_of_the_step_on_and_input_comes_first() -> None:
    session = session_of(source(), batch())
    delay = OPERATION_SHARE.value / 100.0 * 10.0
    assert weigh(session, source(), delay).status == "fail"
    assert weigh(session, source(), SHORT_OF_IT * delay).status == "informative"
    assert input_first(waiting_for_input(INPUT_BOUND.value)) is not None
    assert input_first(waiting_for_input(SHORT_OF_IT * INPUT_BOUND.value)) is None


@pytest.mark.parametrize(("contested", "undecided"), [(None, False), (59.0, True), (-30.0, False)])
def test_a_wait_that_a_repeated_batch_contests_is_open(
    contested: float | None, undecided: bool
) -> None:
    wait = make_input_wait(native_percent=1.0, contested_by_percent=contested)
    session = make_session(breakdown=make_breakdown(input_wait=1.0), input_wait=wait)
    assert weigh_input(session).undecided is undecided


def on(
    meta: Meta,
    limit: Threshold,
    device: Callable[[float], DeviceActivity],
    at: FindingStatus = "fail",
    below: FindingStatus = "pass",
) -> Limit:
    """A limit of a rule on a device."""
    return Limit(meta, limit, lambda value: on_devices(meta, device(value)), at, below)


def idle(cause: GapCause) -> Callable[[float], DeviceActivity]:
    return lambda percent: a_gpu({cause: percent}, gaps=[])


def launched(percent: float = 40.0, **overrides: Any) -> DeviceActivity:
    return a_gpu({"launch": percent}, gaps=[], launches=launches(**overrides))


def two_gpus(slow_busy: float, fast_busy: float) -> Finding:
    devices = [
        a_gpu({"collective": 100.0 - busy}, name=name, gaps=[], collective_ms=10.0)
        for name, busy in (("GPU:0", slow_busy), ("GPU:1", fast_busy))
    ]
    return on_devices(DEVICE_STRAGGLER, *devices)


@limits(
    [
        on(SYNC_POINT, device_idle.SYNC_IDLE, idle("sync")),
        on(PYTHON_GAP, device_idle.PYTHON_IDLE, idle("python")),
        on(
            PYTHON_GAP,
            device_idle.ONE_PAUSE,
            lambda percent: a_gpu({"python": 40.0}, gaps=[gap("python", 0.4 * percent)]),
            "informative",
            "fail",
        ),
        on(LAUNCH_BOUND, device_idle.LAUNCH_IDLE, idle("launch")),
        on(
            LAUNCH_BOUND,
            device_idle.DELAY,
            lambda us: launched(median_delay_us=us),
            "informative",
            "fail",
        ),
        on(INPUT_GAP, device_idle.INPUT_IDLE, idle("input")),
        on(EXPOSED_HOST_COPY, gpu.EXPOSED, lambda ms: a_gpu(copies=[copies(exposed_ms=ms)])),
        on(
            EXPOSED_HOST_COPY,
            INPUT_GAPS,
            lambda percent: a_gpu({"input": percent}, copies=[copies(exposed_ms=20.0)]),
            "informative",
            "fail",
        ),
        on(
            LAUNCH_BOUND,
            device_idle.SHORT,
            lambda short: launched(10.0, shorter_than_launch_percent=short),
        ),
        on(
            LAUNCH_BOUND,
            device_idle.KERNELS_IDLE,
            lambda percent: launched(percent, shorter_than_launch_percent=80.0),
            below="informative",
        ),
        on(
            LAUNCH_BOUND,
            device_idle.FEWEST,
            lambda count: launched(10.0, matched=int(count), shorter_than_launch_percent=80.0),
        ),
        on(SYNC_POINT, device_idle.UNDER_FLOOR, under_floor, "inconclusive"),
        on(
            MIXED_PRECISION,
            gpu.MATMUL,
            lambda percent: a_gpu(matmul_ms=percent, tensor_core_ms=0.0),
        ),
        on(
            MIXED_PRECISION,
            gpu.TENSOR_CORE,
            lambda ms: a_gpu(matmul_ms=100.0, tensor_core_ms=ms),
            "pass",
            "fail",
        ),
        Limit(
            DEVICE_STRAGGLER,
            gpu.WAITING,
            lambda waiting: two_gpus(100.0, 100.0 - waiting),
            "informative",
            "pass",
        ),
        Limit(
            DEVICE_STRAGGLER,
            gpu.RATIO,
            lambda ratio: two_gpus(75.0 * ratio, 75.0),
            "fail",
            "informative",
        ),
    ]
)
def test_a_device_at_a_limit(limit: Limit) -> None:
    stands(limit)


@pytest.mark.parametrize(
    ("device", "status"),
    [
        # Half unexplained may be anything.
        (under_floor(20.0, idle_ms=40.0), "inconclusive"),
        (under_floor(20.0, idle_ms=40.1), "pass"),
        # A floor that such gaps outlast hides none.
        (under_floor(floor_us=device_idle.SHORTEST_HOST_GAP_US), "pass"),
        (under_floor(floor_us=50.1), "inconclusive"),
    ],
)
def test_idle_time_that_is_not_explained(device: DeviceActivity, status: str) -> None:
    assert on_devices(SYNC_POINT, device).status == status
