"""What a limit says holds from the limit on: rules at it, and just short of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipediag.facts.embeddings import LARGE
from pipediag.facts.limits import INPUT_BOUND, INPUT_GAPS, INPUT_WAIT, OPERATION_SHARE, PERTURBED
from pipediag.rules.caching import MISSING_CACHE
from pipediag.rules.defaults import DEBUG_MODE
from pipediag.rules.device_idle import (
    DELAY,
    FEWEST,
    HIGHLY,
    INPUT_GAP,
    INPUT_IDLE,
    KERNELS_IDLE,
    LAUNCH_BOUND,
    LAUNCH_IDLE,
    ONE_PAUSE,
    PYTHON_GAP,
    PYTHON_IDLE,
    SHORTEST_HOST_GAP_US,
    SMALL_KERNELS,
    SYNC_IDLE,
    SYNC_POINT,
    UNDER_FLOOR,
)
from pipediag.rules.device_idle import SHORT as SHORT_KERNELS
from pipediag.rules.embeddings import DENSE_EMBEDDING_UPDATE
from pipediag.rules.evaluation import COSTLY_EVALUATION
from pipediag.rules.evaluation import OFTEN as EVALUATED_OFTEN
from pipediag.rules.gpu import (
    DEVICE_STRAGGLER,
    EXPOSED,
    EXPOSED_HOST_COPY,
    MATMUL,
    MIXED_PRECISION,
    RATIO,
    TENSOR_CORE,
    WAITING,
)
from pipediag.rules.maps import ELEMENT_TIME, ELEMENTS, PER_ELEMENT_MAP
from pipediag.rules.model_inputs import AT_MOST, PADDING
from pipediag.rules.python_in_step import BATCH_CALLBACK, CALLBACK_SHARE
from pipediag.rules.reading import FROM_DISK, SEQUENTIAL_FILES
from pipediag.rules.relevance import NOTABLE, RELEVANT, SHORT, input_first, weigh
from pipediag.rules.rule import Meta
from pipediag.rules.script_work import OFTEN, SLOW_EPOCH_END, SLOW_START
from pipediag.rules.shuffling import FILL_SHARE, FILL_STEPS, SLOW_SHUFFLE_FILL
from pipediag.rules.step_overhead import (
    BATCH,
    FIXED_COST,
    HOST_OVERHEAD,
    LITTLE,
    OVERHEAD,
    SMALL_BATCH,
)
from pipediag.rules.tracing import COMPILE, RETRACES, RETRACING
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.loops import Perturbation, Share
from pipediag.session.model import HotLine, Session
from pipediag.session.recorded_loops import Callback
from pipediag.vocabulary import GapCause, RunPartName
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
    make_operation,
    make_steps,
)
from tests.rules.devices import copies, gap, gpu, launches, on_devices, session_on, under_floor
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


PIPELINE_LIMITS = [
    Limit(
        DEBUG_MODE,
        INPUT_WAIT,
        lambda low: only(DEBUG_MODE, waiting_for_input(low)),
        "fail",
        "informative",
    ),
    Limit(
        SLOW_SHUFFLE_FILL,
        FILL_SHARE,
        lambda share: only(SLOW_SHUFFLE_FILL, filling(share)),
        "fail",
        "pass",
    ),
    Limit(
        SLOW_SHUFFLE_FILL,
        FILL_STEPS,
        lambda steps: only(SLOW_SHUFFLE_FILL, filling(steps, projected_s=None)),
        "fail",
        "pass",
    ),
    Limit(
        SEQUENTIAL_FILES,
        FROM_DISK,
        lambda percent: only(SEQUENTIAL_FILES, read_files(percent)),
        "fail",
        "informative",
    ),
    Limit(
        PER_ELEMENT_MAP,
        ELEMENTS,
        lambda count: only(PER_ELEMENT_MAP, mapped(count, us_each=100.0)),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", PIPELINE_LIMITS, ids=names_of(PIPELINE_LIMITS))
def test_pipeline_it_holds_from_the_limit_on(limit: Limit) -> None:
    stands(limit)


def test_what_is_exactly_as_large_as_allowed_fits() -> None:
    assert only(MISSING_CACHE, cached(50.0)).advice.startswith("Put `.cache()`")
    assert "on a fast disk" in only(MISSING_CACHE, cached(50.1, 50.0)).advice
    assert only(MISSING_CACHE, cached(50.1, 50.1)).status == "informative"
    assert only(MISSING_CACHE, cached(50.1)).status == "informative"


def test_a_call_of_exactly_the_limit_is_short() -> None:
    limit = ELEMENT_TIME.value
    assert only(PER_ELEMENT_MAP, mapped(us_each=limit)).status == "fail"
    longer = only(PER_ELEMENT_MAP, mapped(us_each=1.001 * limit))
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


HOOK = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])


def in_callback(percent: float) -> Session:
    hot = HotLine(
        file="train.py", line=33, function="on_train_batch_end", percent=percent, thread="main"
    )
    loop = make_loop(keras=make_keras(callbacks=[HOOK]))
    return make_compute_bound_session(loops=[loop], host=make_host(hot_python=[hot]))


def padded(compute: float) -> Session:
    op = make_operation("padded", "padded_batch", line=7, parameters={"batch_size": 32})
    spec = "TensorSpec(shape=(None, None), dtype=tf.int32, name=None)"
    return session_of(
        source(),
        op,
        breakdown=make_breakdown(device_compute=compute),
        loops=[make_loop(element_spec=spec)],
    )


STEP_LIMITS = [
    Limit(
        BATCH_CALLBACK,
        CALLBACK_SHARE,
        lambda percent: only(BATCH_CALLBACK, in_callback(percent)),
        "fail",
        "pass",
    ),
    Limit(
        HOST_OVERHEAD,
        OVERHEAD,
        lambda percent: only(HOST_OVERHEAD, make_session(breakdown=make_breakdown(python=percent))),
        "fail",
        "informative",
    ),
    Limit(
        HOST_OVERHEAD,
        LITTLE,
        lambda percent: only(HOST_OVERHEAD, make_session(breakdown=make_breakdown(python=percent))),
        "informative",
        "pass",
    ),
    Limit(
        SMALL_BATCH,
        FIXED_COST,
        lambda percent: only(
            SMALL_BATCH,
            session_of(source(), batch(32), breakdown=make_breakdown(dispatch=percent)),
        ),
        "fail",
        "informative",
    ),
    Limit(
        SMALL_BATCH,
        BATCH,
        lambda size: only(
            SMALL_BATCH,
            make_session(
                steps=make_steps(batch_size=int(size)),
                breakdown=make_breakdown(dispatch=60.0),
                pipeline=None,
            ),
        ),
        "pass",
        "fail",
    ),
    Limit(PADDING, AT_MOST, lambda part: only(PADDING, padded(part)), "informative", "pass"),
    Limit(
        RETRACING,
        RETRACES,
        lambda times: only(RETRACING, make_session(steps=make_steps(retraces=int(times)))),
        "fail",
        "pass",
    ),
    Limit(
        RETRACING,
        COMPILE,
        lambda part: only(RETRACING, make_session(breakdown=make_breakdown(compile=part))),
        "fail",
        "pass",
    ),
    Limit(
        DENSE_EMBEDDING_UPDATE,
        LARGE,
        lambda mb: only(
            DENSE_EMBEDDING_UPDATE,
            make_session(embeddings=[make_embedding(table_bytes=int(mb * 1e6), update="dense")]),
        ),
        "informative",
        "pass",
    ),
]


@pytest.mark.parametrize("limit", STEP_LIMITS, ids=names_of(STEP_LIMITS))
def test_step_it_holds_from_the_limit_on(limit: Limit) -> None:
    stands(limit)


def before(seconds: float, whole_s: float = 100.0) -> Session:
    row = make_part("before_training", seconds, what="in `read`", file="train.py", line=9)
    return make_session(run=make_run(row, whole_s=whole_s), loops=[make_loop()])


def coming(part: RunPartName, times: float) -> Session:
    """A fifth of the run, in so many times."""
    row = make_part(part, 20.0, what="in `do`", file="train.py", line=40, count=int(times))
    return make_session(run=make_run(row), loops=[make_loop()])


RUN_LIMITS = [
    Limit(
        SLOW_START,
        RELEVANT,
        lambda part: only(SLOW_START, before(part)),
        "fail",
        "informative",
    ),
    Limit(
        SLOW_START,
        NOTABLE,
        lambda part: only(SLOW_START, before(part)),
        "informative",
        "pass",
    ),
    Limit(
        SLOW_START,
        SHORT,
        lambda seconds: only(SLOW_START, before(seconds, whole_s=4.0)),
        "fail",
        "informative",
    ),
    Limit(
        COSTLY_EVALUATION,
        EVALUATED_OFTEN,
        lambda times: only(COSTLY_EVALUATION, coming("evaluation", times)),
        "fail",
        "informative",
    ),
    Limit(
        SLOW_EPOCH_END,
        OFTEN,
        lambda times: only(SLOW_EPOCH_END, coming("epoch_end", times)),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", RUN_LIMITS, ids=names_of(RUN_LIMITS))
def test_run_it_holds_from_the_limit_on(limit: Limit) -> None:
    stands(limit)


def of_device(rule: Meta, cause: GapCause) -> Callable[[float], Finding]:
    return lambda percent: on_devices(rule, gpu({cause: percent}, gaps=[]))


def with_launches(idle: float = 40.0, **overrides: Any) -> DeviceActivity:
    return gpu({"launch": idle}, gaps=[], launches=launches(**overrides))


def perturbed(ratio: float) -> Session:
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=10.0 * ratio, ratio=ratio)
    return session_on(gpu({"sync": 20.0}), perturbation=slowed)


def two_gpus(slow_busy: float, fast_busy: float) -> Finding:
    def device(name: str, busy: float) -> DeviceActivity:
        return gpu({"collective": 100.0 - busy}, name=name, gaps=[], collective_ms=10.0)

    return on_devices(DEVICE_STRAGGLER, device("GPU:0", slow_busy), device("GPU:1", fast_busy))


DEVICE_LIMITS = [
    Limit(SYNC_POINT, SYNC_IDLE, of_device(SYNC_POINT, "sync"), "fail", "pass"),
    Limit(PYTHON_GAP, PYTHON_IDLE, of_device(PYTHON_GAP, "python"), "fail", "pass"),
    Limit(
        PYTHON_GAP,
        ONE_PAUSE,
        lambda percent: on_devices(
            PYTHON_GAP, gpu({"python": 40.0}, gaps=[gap("python", 0.4 * percent)])
        ),
        "informative",
        "fail",
    ),
    Limit(LAUNCH_BOUND, LAUNCH_IDLE, of_device(LAUNCH_BOUND, "launch"), "fail", "pass"),
    Limit(
        LAUNCH_BOUND,
        DELAY,
        lambda us: on_devices(LAUNCH_BOUND, with_launches(median_delay_us=us)),
        "informative",
        "fail",
    ),
    Limit(INPUT_GAP, INPUT_IDLE, of_device(INPUT_GAP, "input"), "fail", "pass"),
    Limit(
        EXPOSED_HOST_COPY,
        EXPOSED,
        lambda ms: on_devices(EXPOSED_HOST_COPY, gpu(copies=[copies(exposed_ms=ms)])),
        "fail",
        "pass",
    ),
    Limit(
        EXPOSED_HOST_COPY,
        INPUT_GAPS,
        lambda idle: on_devices(
            EXPOSED_HOST_COPY, gpu({"input": idle}, copies=[copies(exposed_ms=20.0)])
        ),
        "informative",
        "fail",
    ),
    Limit(
        SMALL_KERNELS,
        SHORT_KERNELS,
        lambda short: on_devices(SMALL_KERNELS, with_launches(shorter_than_launch_percent=short)),
        "fail",
        "pass",
    ),
    Limit(
        SMALL_KERNELS,
        KERNELS_IDLE,
        lambda idle: on_devices(
            SMALL_KERNELS, with_launches(idle, shorter_than_launch_percent=80.0)
        ),
        "fail",
        "informative",
    ),
    Limit(
        SMALL_KERNELS,
        FEWEST,
        lambda count: on_devices(
            SMALL_KERNELS, with_launches(matched=int(count), shorter_than_launch_percent=80.0)
        ),
        "fail",
        "inconclusive",
    ),
    Limit(
        SYNC_POINT,
        UNDER_FLOOR,
        lambda ms: on_devices(SYNC_POINT, under_floor(ms)),
        "inconclusive",
        "pass",
    ),
    Limit(
        SYNC_POINT,
        PERTURBED,
        lambda ratio: only(SYNC_POINT, perturbed(ratio)),
        "inconclusive",
        "fail",
    ),
    Limit(
        DEVICE_STRAGGLER,
        WAITING,
        lambda waiting: two_gpus(100.0, 100.0 - waiting),
        "informative",
        "pass",
    ),
    Limit(
        DEVICE_STRAGGLER,
        RATIO,
        lambda ratio: two_gpus(75.0 * ratio, 75.0),
        "fail",
        "informative",
    ),
    Limit(
        MIXED_PRECISION,
        MATMUL,
        lambda percent: on_devices(MIXED_PRECISION, gpu(matmul_ms=percent, tensor_core_ms=0.0)),
        "fail",
        "pass",
    ),
    Limit(
        MIXED_PRECISION,
        TENSOR_CORE,
        lambda ms: on_devices(MIXED_PRECISION, gpu(matmul_ms=100.0, tensor_core_ms=ms)),
        "pass",
        "fail",
    ),
]


@pytest.mark.parametrize("limit", DEVICE_LIMITS, ids=names_of(DEVICE_LIMITS))
def test_device_it_holds_from_the_limit_on(limit: Limit) -> None:
    stands(limit)


def test_idle_time_that_is_half_unexplained_may_be_anything() -> None:
    half = under_floor(20.0, idle_ms=40.0)
    assert on_devices(SYNC_POINT, half).status == "inconclusive"
    less = under_floor(20.0, idle_ms=40.1)
    assert on_devices(SYNC_POINT, less).status == "pass"


def test_a_floor_that_such_gaps_outlast_hides_none() -> None:
    floor = under_floor(floor_us=SHORTEST_HOST_GAP_US)
    assert on_devices(SYNC_POINT, floor).status == "pass"
    assert on_devices(SYNC_POINT, under_floor(floor_us=50.1)).status == "inconclusive"


@pytest.mark.parametrize(("us", "length"), [(1000.0, "1 ms"), (999.0, "999 us")])
def test_a_floor_is_told_in_the_unit_that_fits(us: float, length: str) -> None:
    assert f"in gaps under {length}," in on_devices(SYNC_POINT, under_floor(floor_us=us)).advice


def test_input_is_what_limits_a_device_from_a_fifth_of_its_time_on() -> None:
    of = of_device(INPUT_GAP, "input")
    assert "input is what limits it" in of(HIGHLY.value).advice
    assert "input costs it time" in of(SHORT_OF_IT * HIGHLY.value).advice


@pytest.mark.parametrize(
    ("gb_per_s", "count", "words"),
    [
        (25.0, 10, "about what PCIe gives"),
        (24.9, 1, "Copies from pinned memory"),
        (24.9, 10, "Copies from pinned memory"),
        (24.9, 11, "pack features"),
    ],
)
def test_a_copy_s_rate_is_judged_by_its_size(gb_per_s: float, count: int, words: str) -> None:
    """Of 10 MiB in all, on a bus of 50 GB/s."""
    device = gpu(copies=[copies(gb_per_s=gb_per_s, bytes=10 * 2**20, count=count)])
    assert words in on_devices(EXPOSED_HOST_COPY, device).advice
