from __future__ import annotations

from pipediag.facts.python_work import computes_at_once, data_cores, hot_line, hottest_line_sentence
from pipediag.session.host import HotLine
from tests.factories import make_host, make_session
from tests.records import make_operation


def line(number: int, thread: str, percent: float) -> HotLine:
    return HotLine(file="train.py", line=number, function="work", percent=percent, thread=thread)


HOST = make_host(
    hot_python=[line(1, "main", 90.0), line(2, "source", 20.0), line(3, "other", 30.0)]
)


def test_the_hottest_line_is_of_the_threads_asked_for() -> None:
    assert hot_line(HOST, "main") == line(1, "main", 90.0)
    assert hot_line(HOST, "source") == line(2, "source", 20.0)
    assert hot_line(HOST, "source", "other") == line(3, "other", 30.0)
    assert hot_line(None, "main") is None


def test_advice_names_no_line_of_the_training_loop() -> None:
    assert "train.py:3 in work" in hottest_line_sentence(make_session(host=HOST))
    only_main = make_host(hot_python=[line(1, "main", 90.0)])
    assert hottest_line_sentence(make_session(host=only_main)) == ""


def test_cores_of_the_data_threads_leave_out_the_loop_and_the_model() -> None:
    pools = {"tf_data": 120.0, "python_other": 30.0, "python_main": 100.0, "eigen": 200.0}
    assert data_cores(make_host(threads=pools)) == 1.5
    assert data_cores(None) == 0.0


def test_only_of_parallel_calls_busy_threads_say_that_they_compute_at_once() -> None:
    session = make_session(host=make_host(threads={"tf_data": 170.0}))
    assert computes_at_once(session, make_operation("map", parallelism=2))
    assert not computes_at_once(session, make_operation("map", parallelism=1))
    calm = make_session(host=make_host(threads={"tf_data": 110.0}))
    assert not computes_at_once(calm, make_operation("map", parallelism=2))
