from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from pipediag.trace.classes import STEP_CLASSES, Activity, classify, sweep
from pipediag.trace.device_events import device_class, stream_lines
from pipediag.vocabulary import StepClass
from tests.trace.builder import (
    PlaneBuilder,
    TraceBuilder,
    add_eager_call,
    add_graph_call,
    add_steps,
)


def spans(activity: Activity, name: StepClass) -> list[list[int]]:
    return [[int(edge) for edge in row] for row in activity.by_class[name]]


def test_every_class_has_a_priority() -> None:
    assert set(STEP_CLASSES) == set(get_args(StepClass))


def test_executor_operations_are_the_compute_of_a_machine_without_accelerator(
    tmp_path: Path,
) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_graph_call(host.line("python"), 0, 1000)
    executor = host.line("tf_Compute/1")
    executor.event("ExecutorState::Process", 100, 300, id=7)
    executor.event("StatefulPartitionedCall/adam/Add_6:AddV2", 120, 180)
    executor.event("StatefulPartitionedCall/dense/MatMul:_MklMatMul", 200, 290)
    activity = classify(builder.events(tmp_path))
    assert spans(activity, "device_compute") == [[120, 180], [200, 290]]
    assert spans(activity, "dispatch") == [[0, 1000]]


def test_operations_of_tf_data_are_not_the_steps_compute(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_graph_call(host.line("python"), 0, 1000)
    producer = host.line("tf_data_iterator_resource/1")
    producer.event("InstantiatedCapturedFunction::RunAsync", 0, 10, id=-55)
    host.line("tf_data_private_threadpool/1").event("Sin:Sin", 0, 500)
    shared = host.line("tf_Compute/1")
    shared.event("ExecutorState::Process", 0, 400, id=-55)
    shared.event("Cast:Cast", 10, 390)
    shared.event("ExecutorState::Process", 500, 600, id=7)
    shared.event("dense/MatMul:MatMul", 510, 590)
    assert spans(classify(builder.events(tmp_path)), "device_compute") == [[510, 590]]


def test_a_dataset_that_the_step_goes_over_by_itself_is_its_compute(tmp_path: Path) -> None:
    """As a top-K metric over all candidates does; one that the input pipeline reduces is not."""
    builder = TraceBuilder()
    host = builder.host()
    add_graph_call(host.line("python"), 0, 1000)
    producer = host.line("tf_data_iterator_resource/1")
    producer.event("InstantiatedCapturedFunction::RunAsync", 0, 10, id=-55)
    reduction = host.line("tf_data_reduce_dataset/1")
    reduction.event("ReduceDatasetOp::DoCompute", 100, 700, id=7)
    reduction.event("ReduceIterator::Root::ParallelMapV2", 110, 690, id=8)
    reduction.event("ReduceDatasetOp::DoCompute", 800, 900, id=-55)
    assert spans(classify(builder.events(tmp_path)), "device_compute") == [[100, 700]]


def test_a_graph_that_a_py_function_of_tf_data_calls_is_not_the_steps_compute(
    tmp_path: Path,
) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_graph_call(host.line("python"), 0, 1000)
    host.line("python").event("FunctionRun", 5, 10, id=7)
    pool = host.line("tf_data_private_threadpool/1")
    pool.event("InstantiatedCapturedFunction::Run", 0, 500, id=-55)
    pool.event("EagerPyFunc:EagerPyFunc", 10, 490)
    pool.event("FunctionRun", 20, 30, id=66)
    shared = host.line("tf_Compute/1")
    shared.event("ExecutorState::Process", 40, 400, id=66)
    shared.event("EagerPyFunc:EagerPyFunc", 50, 390)
    shared.event("ExecutorState::Process", 500, 600, id=7)
    shared.event("dense/MatMul:MatMul", 510, 590)
    assert spans(classify(builder.events(tmp_path)), "device_compute") == [[510, 590]]


def test_an_operation_that_only_calls_a_function_is_not_compute(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python")
    line.event("TFE_Py_ExecuteCancelable", 0, 1000)
    line.event("__inference_train_step_499:__inference_train_step_499", 10, 990)
    line.event("ThunkExecutor::Execute", 100, 900)
    line.event("wrapped_add", 200, 300, hlo_op="wrapped_add", hlo_module="cluster")
    worker = host.line("tf_numa_-1_Eigen/1")
    worker.event("MatMul.8", 250, 400, hlo_op="MatMul.8", hlo_module="cluster")
    assert spans(classify(builder.events(tmp_path)), "device_compute") == [[200, 400]]


def test_an_eager_kernel_is_compute_and_its_wrapper_dispatch(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    add_steps(line, 50, 300)
    add_eager_call(line, "MatMul", 100, 200)
    activity = classify(builder.events(tmp_path))
    assert spans(activity, "device_compute") == [[110, 190]]
    assert spans(activity, "dispatch") == [[100, 200]]


def test_eager_get_next_is_input_wait_and_no_compute(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    add_eager_call(line, "IteratorGetNext", 0, 500)
    line.event("IteratorGetNextOp::DoCompute", 20, 480, element_size=64)
    activity = classify(builder.events(tmp_path))
    assert spans(activity, "device_compute") == []
    assert spans(activity, "input_wait") == [[20, 480]]


def test_the_wait_for_a_graph_function_is_not_an_eager_kernel(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    add_graph_call(line, 0, 500)
    assert spans(classify(builder.events(tmp_path)), "device_compute") == []


@pytest.mark.parametrize(
    "name",
    [
        "IteratorGetNextOp::DoCompute",
        "IteratorGetNextAsOptionalOp::DoCompute",
    ],
)
def test_get_next_by_either_operation(tmp_path: Path, name: str) -> None:
    builder = TraceBuilder()
    builder.host().line("tf_data_iterator_get_next/1").event(name, 5, 25, id=7)
    assert spans(classify(builder.events(tmp_path)), "input_wait") == [[5, 25]]


def old_graph() -> tuple[TraceBuilder, PlaneBuilder]:
    """One call of a graph function, and the executor that runs it."""
    builder = TraceBuilder()
    host = builder.host()
    add_graph_call(host.line("python"), 0, 1000)
    return builder, host


@pytest.mark.parametrize(
    "name",
    [
        "IteratorGetNext:IteratorGetNext",
        "while/body/IteratorGetNext_1:IteratorGetNext",
        "replica_1/IteratorGetNextAsOptional:IteratorGetNextAsOptional",
        "IteratorGetNextSync:IteratorGetNextSync",
    ],
)
def test_older_tensorflow_waits_in_the_operations_own_event(tmp_path: Path, name: str) -> None:
    builder, host = old_graph()
    executor = host.line("tf_Compute/1")
    executor.event(name, 100, 600)
    executor.event("dense/MatMul:MatMul", 600, 900)
    swept = sweep(classify(builder.events(tmp_path)).by_class)
    assert swept["input_wait"].tolist() == [[100, 600]]
    assert swept["device_compute"].tolist() == [[600, 900]]
    assert swept["dispatch"].tolist() == [[0, 100], [900, 1000]]


def test_where_get_next_has_events_of_its_own_its_operation_only_schedules(tmp_path: Path) -> None:
    builder, host = old_graph()
    host.line("tf_Compute/1").event("IteratorGetNext:IteratorGetNext", 100, 110)
    host.line("tf_data_iterator_get_next/1").event("IteratorGetNextOp::DoCompute", 120, 600, id=7)
    assert spans(classify(builder.events(tmp_path)), "input_wait") == [[120, 600]]


def test_what_follows_get_next_is_no_wait(tmp_path: Path) -> None:
    builder, host = old_graph()
    executor = host.line("tf_Compute/1")
    executor.event("IteratorGetNextAsOptional_4/_40:_Send", 0, 100)
    executor.event("cond/IteratorGetNext_2/_53:Switch", 100, 200)
    executor.event("MultiDeviceIteratorGetNextFromShard:MultiDeviceIteratorGetNextFromShard", 0, 90)
    assert spans(classify(builder.events(tmp_path)), "input_wait") == []


def test_a_function_of_older_tf_data_that_reads_an_iterator_is_no_consumer(tmp_path: Path) -> None:
    builder, host = old_graph()
    producer = host.line("tf_data_iterator_resource/1")
    producer.event("InstantiatedCapturedFunction::Run", 0, 100, id=9)
    producer.event("IteratorGetNext:IteratorGetNext", 10, 90)
    shared = host.line("tf_Compute/1")
    shared.event("ExecutorState::Process", 100, 200, id=9)
    shared.event("IteratorGetNext:IteratorGetNext", 110, 190)
    shared.event("ExecutorState::Process", 300, 400, id=7)
    shared.event("IteratorGetNext:IteratorGetNext", 310, 390)
    assert spans(classify(builder.events(tmp_path)), "input_wait") == [[310, 390]]


def test_in_older_tensorflow_one_replicas_operation_tells_of_the_hand_overs(tmp_path: Path) -> None:
    builder, host = old_graph()
    for replica, name in enumerate(("IteratorGetNext", "IteratorGetNext_1")):
        executor = host.line(f"tf_Compute/{replica}")
        for start in (0, 300, 600):
            executor.event(f"{name}:IteratorGetNext", start, start + 100 + replica)
    activity = classify(builder.events(tmp_path))
    assert activity.handed_over_ns.tolist() == [100, 400, 700]
    assert activity.get_next.tolist() == [[0, 101], [300, 401], [600, 701]]


def test_get_next_by_the_prefetcher_of_a_device_blocks_nobody(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("tf_data_multi_device_iterator_get_next/1")
    line.event("MultiDeviceIteratorGetNextFromShardOp::DoCompute", 5, 25)
    producer = host.line("tf_data_iterator_resource/1")
    producer.event("InstantiatedCapturedFunction::RunWithBorrowedArgs", 0, 100, id=9)
    producer.event("IteratorGetNextOp::DoCompute", 10, 90, id=9)
    assert spans(classify(builder.events(tmp_path)), "input_wait") == []


def test_a_call_that_traces_is_compilation_from_end_to_end(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    add_graph_call(line, 0, 300, tf_function_call="traced-nonXla")
    add_graph_call(line, 400, 500, tf_function_call="notTraced-nonXla")
    line.event("CpuCompiler::RunBackend", 600, 700)
    activity = classify(builder.events(tmp_path))
    assert spans(activity, "compile") == [[0, 300], [600, 700]]


def test_python_is_the_training_threads_record(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    host.line("python").event("pipediag_step", 100, 900, step_num=0)
    host.line("python").event("TFE_Py_Execute", 0, 5_000)
    activity = classify(builder.events(tmp_path))
    assert activity.line is not None
    assert len(activity.line) == 1
    assert spans(activity, "python") == [[100, 900]]


def test_a_profile_without_a_training_thread(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("tf_Compute/1").event("a:AddV2", 0, 10)
    activity = classify(builder.events(tmp_path))
    assert activity.line is None
    assert spans(activity, "python") == []
    assert spans(activity, "device_compute") == [[0, 10]]


def gpu_profile() -> TraceBuilder:
    """One step on a GPU: launch, copy, kernel, all-reduce, a wait, and derived lines."""
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python")
    line.event("pipediag_step", 0, 1000, step_num=0)
    add_graph_call(line, 0, 900)
    executor = host.line("tf_Compute/1")
    executor.event("ExecutorState::Process", 50, 150, id=7)
    executor.event("dense/MatMul:MatMul", 60, 140)
    gpu = builder.plane("/device:GPU:0")
    stream = gpu.line("Stream #13(Kernel,MemcpyH2D)", 13)
    stream.event(
        "MemcpyH2D", 150, 250, memcpy_details="kind_src:pageable kind_dst:device size:64 async:1"
    )
    stream.event("void gemm_kernel<float>(float*)", 250, 600, correlation_id=1)
    gpu.line("Stream #14(Kernel)", 14).event("ncclDevKernel_AllReduce_Sum_f32", 550, 700)
    gpu.line("Steps", 0xDEADBEEF).event("0", 0, 1000)
    gpu.line("XLA Ops").event("fusion", 0, 1000)
    return builder


def test_an_accelerators_streams(tmp_path: Path) -> None:
    activity = classify(gpu_profile().events(tmp_path))
    assert spans(activity, "device_compute") == [[250, 600]]
    assert spans(activity, "device_copy") == [[150, 250]]
    assert spans(activity, "collective") == [[550, 700]]


def test_the_host_of_an_accelerator_launches_and_waits(tmp_path: Path) -> None:
    swept = sweep(classify(gpu_profile().events(tmp_path)).by_class)
    assert swept["collective"].tolist() == [[600, 700]]
    assert swept["device_wait"].tolist() == [[0, 50], [700, 900]]
    assert swept["dispatch"].tolist() == [[50, 150]]
    assert swept["python"].tolist() == [[900, 1000]]


def test_derived_lines_of_2020_have_negative_ids(tmp_path: Path) -> None:
    builder = TraceBuilder()
    gpu = builder.plane("/device:GPU:0")
    gpu.line("Steps of a new name", -559038737).event("0", 0, 9)
    gpu.line("Stream #2", 2).event("kernel", 0, 1)
    plane = builder.events(tmp_path).planes[0]
    assert [line.name for line in stream_lines(plane)] == ["Stream #2"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MemcpyH2D", "device_copy"),
        ("MemcpyD2H", "device_copy"),
        ("MemcpyP2P", "device_copy"),
        ("Memset", "device_copy"),
        ("__amd_rocclr_copyBuffer.kd", "device_copy"),
        ("__amd_rocclr_fillBufferAligned.kd", "device_copy"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float", "collective"),
        ("ncclDevKernel_AllGather_RING_LL", "collective"),
        ("void Eigen::internal::EigenMetaKernel<float>", "device_compute"),
        ("loop_convert_fusion.kd", "device_compute"),
    ],
)
def test_the_class_of_a_device_event(name: str, expected: StepClass) -> None:
    assert device_class(name) == expected


def test_a_step_that_xla_compiles_within_another_one_is_compiled_on_an_executor(
    tmp_path: Path,
) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_graph_call(host.line("python"), 0, 1000)
    executor = host.line("tf_Compute/1")
    executor.event("ExecutorState::Process", 100, 900, id=7)
    executor.event("CpuCompiler::RunBackend", 200, 800)
    host.line("tf_xla-cpu-codegen/1").event("FusionCompiler::Compile", 700, 990)
    activity = classify(builder.events(tmp_path))
    assert spans(activity, "compile") == [[200, 800]]


def test_what_tf_data_compiles_is_none_of_the_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_graph_call(host.line("python"), 0, 1000)
    producer = host.line("tf_data_iterator_resource/1")
    producer.event("InstantiatedCapturedFunction::RunAsync", 0, 10, id=-55)
    shared = host.line("tf_Compute/1")
    shared.event("ExecutorState::Process", 0, 400, id=-55)
    shared.event("CpuCompiler::RunBackend", 10, 390)
    assert spans(classify(builder.events(tmp_path)), "compile") == []
