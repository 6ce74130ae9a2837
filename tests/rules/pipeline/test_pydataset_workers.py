from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import pydataset_workers, python_source_lock
from pipediag.session.edits import Remove, Replace, SetOptions
from pipediag.session.host import HotLine
from pipediag.session.model import Session
from pipediag.session.steps import Differential
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.records import make_operation
from tests.rules.sessions import keeps_up, only, session_of

# Input takes 8 of 10 ms.
ALONE = Differential(step_ms=2.0, ci95_ms=(1.9, 2.1), steps=30, input_share_percent=80.0)
LINE = HotLine(file="data.py", line=7, function="__getitem__", percent=80.0, thread="source")
WAITING = make_host(threads={"tf_data": 10.0}, python_source_cpu_ms_per_step=0.0, hot_python=[LINE])
DECODING = make_host(
    threads={"tf_data": 90.0},
    python_source_cpu_ms_per_step=0.0,
    hot_python=[LINE],
    lock_percent=8.0,
)
LOCKING = make_host(
    threads={"tf_data": 90.0},
    python_source_cpu_ms_per_step=0.0,
    hot_python=[],
    lock_percent=60.0,
)
ONE_THREAD = SetOptions({"autotune.enabled": False, "threading.private_threadpool_size": 1})


def session_with(host: Any = WAITING, keras: dict[str, Any] | None = None, **more: Any) -> Session:
    use = make_keras(
        data_adapter="PyDatasetAdapter",
        source="Stored",
        source_file="data.py",
        source_line=3,
        **{"workers": 1, **(keras or {})},
    )
    ops = (
        make_operation("rows", "from_generator", made_by_framework=True, self_ms_per_step=8.0),
        make_operation("ahead", "prefetch", made_by_framework=True),
    )
    loops = [make_loop(keras=use)]
    return session_of(*ops, **{"host": host, "differential": ALONE, "loops": loops, **more})


def test_one_that_waits_is_read_by_many() -> None:
    finding = only(pydataset_workers, session_with())
    assert finding.status == "fail"
    assert (finding.file, finding.line) == ("data.py", 7)
    assert "super().__init__(workers=16, max_queue_size=32)" in finding.advice
    assert finding.edit is not None
    by_workers = Replace("rows", "PyDataset", {"workers": 16, "max_queue_size": 32})
    assert finding.edit.changes == (by_workers, Remove("ahead"), ONE_THREAD)
    # 2 ms alone; 1 ms of CPU; 8 ms over sixteen.
    assert finding.speedup_at_most == pytest.approx(5.0)


def test_one_that_releases_the_lock_is_read_by_as_many_as_there_are_cpus() -> None:
    finding = only(pydataset_workers, session_with(DECODING))
    assert finding.status == "fail"
    assert "super().__init__(workers=2)" in finding.advice
    assert finding.speedup_at_most is None


def test_one_that_holds_the_lock_informs_and_is_tried() -> None:
    finding = only(pydataset_workers, session_with(LOCKING))
    assert finding.status == "informative"
    assert finding.edit is not None
    assert "use_multiprocessing=True" in finding.advice
    assert "__main__" in finding.advice


@pytest.mark.parametrize(
    ("keras", "status"),
    [
        ({"workers": 4}, "pass"),
        ({"workers": 1, "use_multiprocessing": True}, "pass"),
        ({"workers": 0, "use_multiprocessing": True}, "fail"),
        ({"workers": None}, "fail"),
    ],
)
def test_workers_are_those_that_keras_starts(keras: dict[str, Any], status: str) -> None:
    assert only(pydataset_workers, session_with(keras=keras)).status == status


def test_one_that_keeps_up_passes() -> None:
    assert only(pydataset_workers, session_with(**keeps_up())).status == "pass"


def test_what_was_not_recorded_is_not_tried() -> None:
    finding = only(pydataset_workers, session_with(pipeline={"ops": []}))
    assert (finding.status, finding.edit) == ("fail", None)
    assert finding.trial.reason == "How Keras reads the PyDataset was not recorded."


def test_without_the_host_it_is_tried_all_the_same() -> None:
    finding = only(pydataset_workers, session_with(None))
    assert finding.status == "informative"
    assert finding.edit is not None
    assert (finding.file, finding.line) == ("data.py", 3)


def test_other_sources_are_none_of_its_business() -> None:
    assert only(pydataset_workers, make_session()).status == "not-applicable"


@pytest.mark.parametrize(("host", "first"), [(DECODING, "pydataset-workers"), (LOCKING, None)])
def test_threads_come_before_processes_where_they_help(host: Any, first: str | None) -> None:
    finding = only(python_source_lock, session_with(host))
    assert (finding.status, finding.needs_first) == ("fail", first)
