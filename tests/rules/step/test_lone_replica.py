from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.step import lone_replica
from pipediag.session.findings import Finding
from pipediag.session.run import Device
from tests.factories import make_keras, make_loop, make_session
from tests.records import make_environment
from tests.rules.sessions import only


def finding_with(gpus: int = 0, **loop: Any) -> Finding:
    devices = [Device(name=f"GPU {number}", kind="GPU") for number in range(gpus)]
    loops = [make_loop(**{"strategy": "MirroredStrategy", **loop})]
    session = make_session(loops=loops, environment=make_environment(devices=devices))
    return only(lone_replica, session)


def test_one_replica_beside_other_gpus_fails() -> None:
    finding = finding_with(gpus=4)

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert "one replica, while TensorFlow sees 4 GPUs" in finding.advice
    assert finding.trial.reason is not None


@pytest.mark.parametrize("gpus", [0, 1])
def test_one_replica_on_one_device_informs(gpus: int) -> None:
    finding = finding_with(gpus=gpus, keras=make_keras(jit_compile=False))

    assert finding.status == "informative"
    assert "divides nothing: train without it. Keras leaves XLA off" in finding.advice


@pytest.mark.parametrize("keras", [None, make_keras(jit_compile=True)])
def test_of_xla_nothing_is_said_where_keras_does_not_choose(keras: Any) -> None:
    assert "XLA" not in finding_with(keras=keras).advice


def test_a_strategy_for_one_device_is_meant_so() -> None:
    assert finding_with(gpus=2, strategy="OneDeviceStrategy").status == "informative"


def test_several_replicas_pass() -> None:
    assert finding_with(gpus=2, replicas=2).status == "pass"


def test_without_a_strategy() -> None:
    assert finding_with(gpus=2, strategy=None).status == "not-applicable"
