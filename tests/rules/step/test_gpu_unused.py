from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.step import gpu_unused
from pipediag.session.run import Device
from tests.factories import make_session
from tests.records import make_environment
from tests.rules.sessions import only


def finding_with(**overrides: Any) -> Any:
    return only(gpu_unused, make_session(environment=make_environment(**overrides)))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"cuda_visible_devices": "-1", "cuda_build": True}, "unset it"),
        ({"cuda_visible_devices": "", "cuda_build": True}, "unset it"),
        ({"cuda_build": False}, "CPU-only build"),
        (
            {"cuda_build": True, "framework_messages": ["Cannot dlopen some GPU libraries."]},
            "Install the GPU libraries",
        ),
        (
            {"cuda_build": True, "framework_messages": ["failed call to cuInit: UNKNOWN"]},
            "nvidia-smi",
        ),
        ({"cuda_build": True}, "set_visible_devices"),
        ({"keras_backend": "jax", "cuda_build": False}, "jax[cuda12]"),
    ],
)
def test_names_the_cause(overrides: dict[str, Any], words: str) -> None:
    finding = finding_with(gpu_installed=["NVIDIA H200"], **overrides)
    assert finding.status == "fail"
    assert finding.severity == "error"
    assert words in finding.advice


def test_passes_where_the_gpu_is_used() -> None:
    gpu = Device(name="/device:GPU:0", kind="GPU")
    assert finding_with(gpu_installed=["NVIDIA H200"], devices=[gpu]).status == "pass"


def test_is_silent_on_a_machine_without_a_gpu() -> None:
    finding = finding_with(cuda_build=False, framework_messages=["Could not find cuda drivers"])
    assert finding.status == "not-applicable"


def test_is_silent_where_tensorflow_was_not_imported() -> None:
    finding = finding_with(gpu_installed=["NVIDIA H200"], tensorflow=None)
    assert finding.status == "not-applicable"
