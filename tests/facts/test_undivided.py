from __future__ import annotations

import pytest

from pipediag.facts.step import limits_within, only_input_is_told
from pipediag.session.model import Session
from tests.factories import make_session
from tests.records import make_breakdown, make_environment


def on(
    backend: str, *, computed: float = 0.0, interval: tuple[float, float] = (1.0, 3.0)
) -> Session:
    shares = make_breakdown(input_wait=2.0, device_compute=computed)
    wait = shares["input_wait"].model_copy(update={"ci95_percent": interval})
    environment = make_environment(keras_backend=backend)
    return make_session(environment=environment, breakdown={**shares, "input_wait": wait})


def test_what_pytorch_computes_on_the_cpu_is_not_divided() -> None:
    assert only_input_is_told(on("torch"))
    assert not only_input_is_told(on("tensorflow"))
    assert not only_input_is_told(on("torch").model_copy(update={"breakdown": None}))


def test_what_it_computes_on_a_gpu_is_seen() -> None:
    assert not only_input_is_told(on("torch", computed=60.0))


def test_more_steps_tell_more_where_the_input_wait_may_be_anything() -> None:
    assert only_input_is_told(on("torch", interval=(3.0, 9.0)))
    assert not only_input_is_told(on("torch", interval=(3.0, 30.0)))


@pytest.mark.parametrize(
    ("interval", "limits"),
    [((1.0, 4.0), []), ((4.0, 5.0), [5.0]), ((5.0, 20.0), [20.0]), ((4.0, 25.0), [5.0, 20.0])],
)
def test_limits_of_the_input_wait(interval: tuple[float, float], limits: list[float]) -> None:
    assert limits_within(interval) == limits
