from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.classes import STEP_CLASSES, classify
from pipediag.trace.intervals import without_earlier
from pipediag.vocabulary import StepClass
from tests.trace.builder import (
    Event,
    TraceBuilder,
    add_events,
    eager_call,
    graph_call,
    host_profile,
    marked_steps,
)

Threads = dict[str, list[Event]]
Spans = dict[StepClass, list[list[int]]]
CALL = graph_call(0, 1000)
RUN, PROCESS = "InstantiatedCapturedFunction::Run", "ExecutorState::Process"
GET_NEXT = "IteratorGetNextOp::DoCompute"
PIPELINE, STEP = {"id": -55}, {"id": 7}
STARTED = [(f"{RUN}Async", 0, 10, PIPELINE)]

CASES: dict[str, tuple[Threads, Spans]] = {
    "without an accelerator, operations of the executor are compute": (
        {
            "python": CALL,
            "tf_Compute/1": [
                (PROCESS, 100, 300, STEP),
                ("StatefulPartitionedCall/adam/Add_6:AddV2", 120, 180),
                ("StatefulPartitionedCall/dense/MatMul:_MklMatMul", 200, 290),
            ],
        },
        {"device_compute": [[120, 180], [200, 290]], "dispatch": [[0, 1000]]},
    ),
    "an exchange with other workers is no compute, in the step or before it": (
        {
            "python": [
                *CALL,
                ("EagerExecute", 1100, 1400),
                ("EagerLocalExecute: CollectiveReduceV2", 1110, 1390),
                ("KernelAndDeviceFunc::Run", 1120, 1380),
            ],
            "collective_ops/1": [
                ("StatefulPartitionedCall/cond/CollectiveReduceV2_1:CollectiveReduceV2", 300, 900),
                ("CollectiveReduceV2:CollectiveReduceV2", 1150, 1350),
            ],
            "tf_Compute/1": [(PROCESS, 100, 300, STEP), ("dense/MatMul:MatMul", 200, 290)],
        },
        {"device_compute": [[200, 290]], "collective": [[300, 900], [1150, 1350]]},
    ),
    "a dataset that the step reduces is compute, but not one that the input pipeline does": (
        {
            "python": CALL,
            "tf_data_iterator_resource/1": STARTED,
            "tf_data_reduce_dataset/1": [
                ("ReduceDatasetOp::DoCompute", 100, 700, STEP),
                ("ReduceIterator::Root::ParallelMapV2", 110, 690, {"id": 8}),
                ("ReduceDatasetOp::DoCompute", 800, 900, PIPELINE),
            ],
        },
        {"device_compute": [[100, 700]]},
    ),
    "a graph that a py_function of tf.data calls is not the step's": (
        {
            "python": [*CALL, ("FunctionRun", 5, 10, STEP)],
            "tf_data_private_threadpool/1": [
                (RUN, 0, 500, PIPELINE),
                ("EagerPyFunc:EagerPyFunc", 10, 490),
                ("FunctionRun", 20, 30, {"id": 66}),
            ],
            "tf_Compute/1": [
                (PROCESS, 40, 400, {"id": 66}),
                ("EagerPyFunc:EagerPyFunc", 50, 390),
                (PROCESS, 500, 600, STEP),
                ("dense/MatMul:MatMul", 510, 590),
            ],
        },
        {"device_compute": [[510, 590]]},
    ),
    "an operation that only calls a function is no compute, and XLA's thunks are": (
        {
            "python": [
                ("TFE_Py_ExecuteCancelable", 0, 1000),
                ("__inference_train_step_499:__inference_train_step_499", 10, 990),
                ("ThunkExecutor::Execute", 100, 900),
                ("wrapped_add", 200, 300, {"hlo_op": "wrapped_add", "hlo_module": "cluster"}),
            ],
            "tf_numa_-1_Eigen/1": [
                ("MatMul.8", 250, 400, {"hlo_op": "MatMul.8", "hlo_module": "cluster"})
            ],
        },
        {"device_compute": [[200, 400]]},
    ),
    "an eager kernel is compute, and its wrapper dispatch": (
        {"python": [*marked_steps(50, 300), *eager_call("MatMul", 100, 200)]},
        {"device_compute": [[110, 190]], "dispatch": [[100, 200]]},
    ),
    "eager GetNext is input wait and no compute": (
        {
            "python": [
                *eager_call("IteratorGetNext", 0, 500),
                (GET_NEXT, 20, 480, {"element_size": 64}),
            ]
        },
        {"device_compute": [], "input_wait": [[20, 480]]},
    ),
    "the wait for a graph function is no eager kernel": (
        {"python": graph_call(0, 500)},
        {"device_compute": []},
    ),
    "GetNext that may find the end": (
        {"tf_data_iterator_get_next/1": [("IteratorGetNextAsOptionalOp::DoCompute", 5, 25, STEP)]},
        {"input_wait": [[5, 25]]},
    ),
    "where GetNext has events of its own, its operation only schedules": (
        {
            "python": CALL,
            "tf_Compute/1": [("IteratorGetNext:IteratorGetNext", 100, 110)],
            "tf_data_iterator_get_next/1": [(GET_NEXT, 120, 600, STEP)],
        },
        {"input_wait": [[120, 600]]},
    ),
    "what follows GetNext is no wait": (
        {
            "python": CALL,
            "tf_Compute/1": [
                ("IteratorGetNextAsOptional_4/_40:_Send", 0, 100),
                ("cond/IteratorGetNext_2/_53:Switch", 100, 200),
                ("MultiDeviceIteratorGetNextFromShard:MultiDeviceIteratorGetNextFromShard", 0, 90),
            ],
        },
        {"input_wait": []},
    ),
    "the prefetcher of a device and tf.data's own functions block nobody in GetNext": (
        {
            "tf_data_multi_device_iterator_get_next/1": [
                ("MultiDeviceIteratorGetNextFromShardOp::DoCompute", 5, 25)
            ],
            "tf_data_iterator_resource/1": [
                (f"{RUN}WithBorrowedArgs", 0, 100, PIPELINE),
                (GET_NEXT, 10, 90, PIPELINE),
            ],
        },
        {"input_wait": []},
    ),
    "a call that traces is compilation from end to end": (
        {
            "python": [
                *graph_call(0, 300, "traced-nonXla"),
                *graph_call(400, 500),
                ("CpuCompiler::RunBackend", 600, 700),
            ]
        },
        {"compile": [[0, 300], [600, 700]]},
    ),
    "Python is the training thread's record": (
        {
            "python": [("pipediag_step", 100, 900, {"step_num": 0})],
            "python2": [("TFE_Py_Execute", 0, 5_000)],
        },
        {"python": [[100, 900]]},
    ),
    "there may be no training thread": (
        {"tf_Compute/1": [("a:AddV2", 0, 10)]},
        {"python": [], "device_compute": [[0, 10]]},
    ),
}


@pytest.mark.parametrize(("threads", "expected"), CASES.values(), ids=CASES)
def test_when_a_class_holds(threads: Threads, expected: Spans, tmp_path: Path) -> None:
    activity = classify(host_profile(threads).events(tmp_path))
    found = {name: activity.by_class[name].tolist() for name in expected}
    assert found == expected


def test_an_accelerators_streams_and_its_host(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python")
    line.event("pipediag_step", 0, 1000, step_num=0)
    add_events(line, graph_call(0, 900))
    host.line("tf_Compute/1").event(PROCESS, 50, 150, id=7).event("dense/MatMul:MatMul", 60, 140)
    gpu = builder.plane("/device:GPU:0")
    stream = gpu.line("Stream #13(Kernel,MemcpyH2D)", 13)
    stream.event("MemcpyH2D", 150, 250, memcpy_details="kind_src:pageable kind_dst:device size:64")
    stream.event("void gemm_kernel<float>(float*)", 250, 600, correlation_id=1)
    gpu.line("Stream #14(Kernel)", 14).event("ncclDevKernel_AllReduce_Sum_f32", 550, 700)
    gpu.line("Steps", 0xDEADBEEF).event("0", 0, 1000)
    gpu.line("XLA Ops").event("fusion", 0, 1000)
    by_class = classify(builder.events(tmp_path)).by_class
    assert by_class["device_compute"].tolist() == [[250, 600]]
    assert by_class["device_copy"].tolist() == [[150, 250]]
    assert by_class["collective"].tolist() == [[550, 700]]
    alone = without_earlier(by_class[name] for name in STEP_CLASSES[:-1])
    swept = dict(zip(STEP_CLASSES[:-1], alone, strict=True))
    assert swept["collective"].tolist() == [[600, 700]]
    assert swept["device_wait"].tolist() == [[0, 50], [700, 900]]
    assert swept["dispatch"].tolist() == [[50, 150]]
    assert swept["python"].tolist() == [[900, 1000]]
