from __future__ import annotations

from pipediag.measures.host import python_threads, thread_pools
from pipediag.session.host_track import HostTrack, ThreadSeen
from tests.measures.tracks import (
    BLAS,
    COMPUTE,
    EIGEN,
    GET_NEXT,
    MAP,
    PID,
    RUNNER,
    SOURCE,
    THREADS,
    make_stacks_window,
    make_track,
    make_window,
)


def test_threads_are_told_by_name_record_and_age() -> None:
    assert thread_pools(make_track(), {PID, SOURCE}) == {
        PID: "python_main",
        BLAS: "others",
        EIGEN: "eigen",
        COMPUTE: "eigen",
        RUNNER: "eigen",
        SOURCE: "python_other",
        MAP: "tf_data",
        GET_NEXT: "tf_data",
    }


def test_unnamed_threads_are_others_where_no_python_thread_is_known() -> None:
    pools = thread_pools(make_track(), set())
    assert pools[PID] == "python_main"
    assert pools[EIGEN] == pools[SOURCE] == pools[MAP] == "others"
    assert pools[COMPUTE] == "eigen"
    assert pools[GET_NEXT] == "tf_data"


def test_names_that_fit_are_believed() -> None:
    names = {1: "python", 2: "tf_data_model", 3: "cuda-EvtHandlr", 4: "Eigen", 5: "tf_xla"}
    track = HostTrack(1, threads={tid: ThreadSeen(tid, name, 0) for tid, name in names.items()})
    assert thread_pools(track, {1}) == {
        1: "python_main",
        2: "tf_data",
        3: "others",
        4: "eigen",
        5: "eigen",
    }


def test_without_a_graph_runner_the_start_is_taken_to_last_a_tenth_of_a_second() -> None:
    threads = {tid: thread for tid, thread in THREADS.items() if tid != RUNNER}
    threads[200] = ThreadSeen(200, "tf_Compute", 503)
    pools = thread_pools(make_track(threads=threads), {PID, SOURCE})
    assert pools[200] == "eigen"
    assert pools[MAP] == "tf_data"


def test_before_tensorflow_started_there_is_only_python() -> None:
    threads = {tid: THREADS[tid] for tid in (PID, BLAS)}
    assert thread_pools(make_track(threads=threads), {PID}) == {PID: "python_main", BLAS: "others"}


def test_python_threads_are_those_that_python_made() -> None:
    window = make_stacks_window(0, 1, 1)
    window.python_thread_cpu_ns["Dummy-3#900"] = 1
    window.python_thread_cpu_ns["a#b#77"] = 1
    assert python_threads([make_window("baseline", 0, 1), window]) == {PID, SOURCE, 77}


def test_a_graph_runner_that_came_before_the_pools_does_not_end_the_start() -> None:
    threads = {
        1: ThreadSeen(1, "python", 100),
        2: ThreadSeen(2, "tf_graph_runner", 413),
        3: ThreadSeen(3, "python", 414),
        4: ThreadSeen(4, "tf_Compute", 414),
        5: ThreadSeen(5, "tf_Compute", 495),
    }
    pools = thread_pools(HostTrack(1, threads=threads), {1})
    assert (pools[3], pools[4], pools[5]) == ("eigen", "eigen", "tf_data")


def test_the_runner_that_came_with_the_pools_ends_the_start() -> None:
    """Without it the first tenth of a second counts as the start."""
    late = ThreadSeen(300, "python", 505)
    threads = {**THREADS, 300: late}
    assert thread_pools(make_track(threads=threads), {PID})[300] == "tf_data"
    without = {tid: thread for tid, thread in threads.items() if tid != RUNNER}
    assert thread_pools(make_track(threads=without), {PID})[300] == "eigen"
