from __future__ import annotations

import pytest

from pipediag.rules.device.prefetch import prefetched_to
from pipediag.session.edits import Insert
from tests.factories import make_loop, make_session
from tests.rules.devices import gpu


@pytest.mark.parametrize(("name", "target"), [("GPU:1", "/gpu:1"), ("GPU", "/gpu:0")])
def test_goes_to_the_device_behind_everything_that_was_written(name: str, target: str) -> None:
    edit = prefetched_to(make_session(), gpu(name=name), "rule")
    assert edit is not None
    assert edit.changes == (Insert("batch_0", "prefetch_to_device", {"device": target}),)


def test_not_without_a_pipeline_or_under_a_strategy() -> None:
    for session in (
        make_session(pipeline=None),
        make_session(loops=[]),
        make_session(loops=[make_loop(kind="distributed")]),
        make_session(loops=[make_loop(replicas=2)]),
    ):
        assert prefetched_to(session, gpu(), "rule") is None
