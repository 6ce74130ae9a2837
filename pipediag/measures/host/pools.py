"""Which pool a thread of the script's process belongs to.

TensorFlow names its threads, but Linux refuses names of more than 15 characters, and a thread whose
name was refused keeps that of the thread that made it: `python` or `tf_Compute`. So most threads of
tf.data (`tf_data_private_threadpool`, `tf_data_iterator_get_next`) and of Eigen
(`tf_numa_-1_Eigen`) don't show their names, and are told by their age instead. When TensorFlow
starts it makes Eigen's threads, then those of `tf_Compute`, then `tf_graph_runner`; tf.data's come
later, with the first iterator. Seen in TensorFlow 2.21.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipediag.session.host_track import HostTrack, ThreadSeen
from pipediag.session.recorded_windows import RecordedWindow
from pipediag.vocabulary import Pool

# TensorFlow's start takes milliseconds; 100 Hz ticks, and a loaded machine, stretch that.
_START_TICKS = 10


def python_threads(windows: Iterable[RecordedWindow]) -> set[int]:
    """Native ids of the threads that Python made, as far as the recording's windows name them.

    Python also lists foreign threads that called back into it, by names that begin with `Dummy-`.
    """
    return {
        int(native_id)
        for window in windows
        for name, _, native_id in (key.rpartition("#") for key in window.python_thread_cpu_ns)
        if not name.startswith("Dummy-")
    }


def thread_pools(track: HostTrack, python_ids: set[int]) -> dict[int, Pool]:
    """The pool of each thread.

    With no `python_ids` nothing tells an unnamed thread of TensorFlow from one of Python, and such
    threads count under `others`.
    """
    start = _runtime_start(track)
    main = track.threads.get(track.pid)
    return {thread.tid: _pool(thread, main, python_ids, start) for thread in track.threads.values()}


_Age = tuple[int, int]


def _age(thread: ThreadSeen) -> _Age:
    return thread.started_ticks, thread.tid


def _runtime_start(track: HostTrack) -> tuple[_Age, _Age] | None:
    """The first and the last thread that TensorFlow's runtime made as it started."""
    compute = sorted(_age(t) for t in track.threads.values() if t.name == "tf_Compute")
    if not compute:
        return None
    first = compute[0]
    # A script that ran an operation of its own before has made the runner before the pools.
    runners = [
        _age(thread)
        for thread in track.threads.values()
        if thread.name == "tf_graph_runner" and _age(thread) > first
    ]
    last = min(runners, default=(first[0] + _START_TICKS, 0))
    return first, last


def _pool(
    thread: ThreadSeen,
    main: ThreadSeen | None,
    python_ids: set[int],
    start: tuple[_Age, _Age] | None,
) -> Pool:
    if main is not None and thread.tid == main.tid:
        return "python_main"
    if thread.tid in python_ids:
        return "python_other"
    if thread.name.startswith("tf_data"):
        return "tf_data"
    inherited = main is not None and thread.name == main.name
    if start is not None and (thread.name == "tf_Compute" or (inherited and python_ids)):
        return _pool_by_age(_age(thread), *start)
    if thread.name.startswith(("tf_", "Eigen")):
        return "eigen"
    return "others"


def _pool_by_age(age: _Age, first: _Age, last: _Age) -> Pool:
    if age > last:
        return "tf_data"
    if age >= (first[0] - _START_TICKS, 0):
        return "eigen"
    return "others"
