"""The machine, and the limits."""

from __future__ import annotations

import pytest

from pipediag.facts.machine import cores_allowed, pool_size, pool_threads
from tests.factories import make_session
from tests.records import make_environment, make_operation, make_pipeline


@pytest.mark.parametrize(("quota", "allowed"), [(None, 8.0), (2.5, 2.5), (16.0, 8.0)])
def test_a_quota_beyond_the_cores_allows_no_more_of_them(
    quota: float | None, allowed: float
) -> None:
    assert cores_allowed(make_environment(cores=8, cpu_quota=quota)) == allowed


def test_an_option_sets_the_pools_size() -> None:
    options = {"threading.private_threadpool_size": 16}
    session = make_session(pipeline=make_pipeline(options=options))
    assert pool_threads(session) == 16
    assert pool_size(session, make_operation("map")) == 16
