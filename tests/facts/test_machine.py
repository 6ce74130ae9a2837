"""The machine, and the limits."""

from __future__ import annotations

import pytest

from pipediag.facts.machine import cores_allowed, on_accelerator, pool_size, pool_threads
from pipediag.session.recording import Device
from tests.factories import make_host, make_session
from tests.records import make_environment, make_operation, make_pipeline


@pytest.mark.parametrize(("quota", "allowed"), [(None, 8.0), (2.5, 2.5), (16.0, 8.0)])
def test_a_quota_beyond_the_cores_allows_no_more_of_them(
    quota: float | None, allowed: float
) -> None:
    assert cores_allowed(make_environment(cores=8, cpu_quota=quota)) == allowed


def test_the_pool_has_a_thread_for_each_whole_cpu() -> None:
    assert pool_threads(make_session(host=make_host(cores_allowed=3.5))) == 3
    assert pool_threads(make_session(host=make_host(cores_allowed=0.5))) == 1


def test_an_option_sets_the_pools_size() -> None:
    options = {"threading.private_threadpool_size": 16}
    session = make_session(pipeline=make_pipeline(options=options))
    assert pool_threads(session) == 16
    assert pool_size(session, make_operation("map")) == 16


def test_a_map_with_threads_of_its_own_has_no_limit() -> None:
    unbounded = make_operation("map", parameters={"use_unbounded_threadpool": True})
    assert pool_size(make_session(), unbounded) is None


def test_a_list_of_cpus_is_no_accelerator() -> None:
    cpu = Device(name="/device:CPU:0", kind="CPU")
    assert not on_accelerator([cpu])
    assert on_accelerator([cpu, Device(name="/device:TPU:0", kind="TPU")])
