"""A hand-made profile of a loop over a dataset inside a graph, with TensorFlow 2.21's names."""

from __future__ import annotations

from tests.trace.builder import LineBuilder, PlaneBuilder, TraceBuilder, add_eager_call

SCAN = "ReduceIterator::Root::Prefetch::Scan"
REDUCTION, PREFETCH, SCANNED, INPUT, SOURCE = 91, 92, 93, 2, 3
STEP_STARTS = (100, 600, 1200)


def scanned_loop() -> TraceBuilder:
    """Two whole steps and a third call, which begin at 100, 600 and 1200 on one thread.

    A call starting at s waits for MapAndBatch until s + 300 and runs the body from s + 310 to
    s + 450. Of that, operations take s + 320 to s + 380 and s + 390 to s + 420, on a thread where
    the pipeline's function takes s + 10 to s + 290. Meanwhile another thread reads a variable.
    """
    builder = TraceBuilder()
    host = builder.host()
    reader = host.line("python")
    add_eager_call(reader, "ReadVariableOp", 150, 900)
    add_passes(host, SCANNED, STEP_STARTS)
    return builder


def add_passes(host: PlaneBuilder, iterator: int, starts: tuple[int, ...]) -> None:
    """The steps of one pass, on threads of its own."""
    reduction = host.line("tf_data_reduce_dataset/1")
    loop = host.line("tf_data_prefetch/1")
    producer = host.line("tf_data_map_and_batch/1")
    pool = host.line("tf_data_private_threadpool/1")
    for number, start in enumerate(starts, start=1):
        end = start + 460
        reduction.event("ReduceIterator::Root", start - 5, end + 5, id=REDUCTION, name="p")
        loop.event("PrefetchProduce", start - 2, end + 2, element_id=1)
        loop.event(SCAN, start, end, id=iterator, parent_id=PREFETCH, name="ScanDataset:5")
        loop.event(
            f"{SCAN}::MapAndBatch",
            start,
            start + 300,
            id=INPUT,
            parent_id=iterator,
            name="fused(m,b)",
            parallelism=1,
        )
        body, function = -number - 10 * iterator, -number
        loop.event("InstantiatedCapturedFunction::Run", start + 310, start + 450, id=body)
        add_input(producer, start, function)
        pool.event("ExecutorState::Process", start + 10, start + 290, id=function)
        pool.event("Sum:Sum", start + 20, start + 280)
        pool.event("ExecutorState::Process", start + 315, start + 425, id=body)
        pool.event("matmul:_MklMatMul", start + 320, start + 380)
        pool.event("AssignSubVariableOp:AssignSubVariableOp", start + 390, start + 420)


def add_input(producer: LineBuilder, start: int, function: int) -> None:
    """One element fetched and its function started, in 20 ns."""
    producer.event("MapAndBatchProduce", start, start + 20, element_id=5)
    producer.event(
        f"{SCAN}::MapAndBatch::TensorSlice",
        start + 2,
        start + 7,
        id=SOURCE,
        parent_id=INPUT,
        name="src",
    )
    producer.event("InstantiatedCapturedFunction::RunAsync", start + 8, start + 12, id=function)


def prefetching_loop() -> TraceBuilder:
    """Three steps over a pipeline that ends in a prefetch, like the loop itself."""
    builder = TraceBuilder()
    host = builder.host()
    loop, producer = host.line("tf_data_prefetch/1"), host.line("tf_data_prefetch/2")
    for start in STEP_STARTS:
        loop.event("PrefetchProduce", start - 2, start + 462, element_id=1)
        loop.event(SCAN, start, start + 460, id=SCANNED, parent_id=PREFETCH)
        loop.event(f"{SCAN}::Prefetch", start, start + 300, id=INPUT, parent_id=SCANNED)
        loop.event("InstantiatedCapturedFunction::Run", start + 310, start + 450, id=-start)
        producer.event("PrefetchProduce", start + 20, start + 70, element_id=2)
        name = f"{SCAN}::Prefetch::Range"
        producer.event(name, start + 30, start + 60, id=SOURCE, parent_id=INPUT)
    return builder
