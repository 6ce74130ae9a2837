from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pipediag.capture.frameworks.registry import FRAMEWORKS as KNOWN
from pipediag.capture.recorder import describe_environment
from pipediag.session.recording import RecordedDevice, RecordedEnvironment

DESCRIPTIONS = [framework.describe for framework in KNOWN]
FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "jax", "numpy")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> RecordedEnvironment:
    for name in list(sys.modules):
        if name.split(".")[0] in FRAMEWORKS:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return RecordedEnvironment(python="3.11", executable="python")


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, **facts: object) -> None:
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(**facts))


def pretend_tensorflow(monkeypatch: pytest.MonkeyPatch, initialised: bool, cuda: bool) -> None:
    def logical_devices() -> list[SimpleNamespace]:
        assert initialised, "asking would initialise the runtime"
        kinds = ["CPU", "CPU", "GPU"]
        return [SimpleNamespace(name=f"/{k}:{n}", device_type=k) for n, k in enumerate(kinds)]

    context = SimpleNamespace(_initialized=initialised, list_logical_devices=logical_devices)
    pretend(
        monkeypatch,
        "tensorflow",
        __version__="2.21.0",
        sysconfig=SimpleNamespace(get_build_info=lambda: {"is_cuda_build": cuda}),
        config=SimpleNamespace(functions_run_eagerly=lambda: True),
    )
    pretend(monkeypatch, "tensorflow.python.eager.context", context=lambda: context)


def test_nothing_is_imported_for_it(environment: RecordedEnvironment) -> None:
    describe_environment(environment, DESCRIPTIONS)

    assert environment == RecordedEnvironment(python="3.11", executable="python")
    assert not any(name in sys.modules for name in FRAMEWORKS)


def test_devices_and_build(
    environment: RecordedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_tensorflow(monkeypatch, initialised=True, cuda=True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    describe_environment(environment, DESCRIPTIONS)

    assert (environment.tensorflow, environment.cuda_build) == ("2.21.0", True)
    assert environment.run_functions_eagerly
    assert not environment.tf_data_debug_mode
    assert environment.devices[2] == RecordedDevice("/GPU:2", "GPU")
    assert environment.logical_cpus_configured
    assert environment.cuda_visible_devices == "1"


def test_an_uninitialised_runtime_is_left_so(
    environment: RecordedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_tensorflow(monkeypatch, initialised=False, cuda=False)
    describe_environment(environment, DESCRIPTIONS)

    assert (environment.devices, environment.cuda_build) == ([], False)


def test_debug_mode(environment: RecordedEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_tensorflow(monkeypatch, initialised=False, cuda=False)
    pretend(monkeypatch, "tensorflow.python.data.ops.debug_mode", DEBUG_MODE=True)
    describe_environment(environment, DESCRIPTIONS)

    assert environment.tf_data_debug_mode


@pytest.mark.parametrize(
    ("policy", "mixed"), [("float32", None), ("mixed_bfloat16", "mixed_bfloat16")]
)
def test_keras(
    environment: RecordedEnvironment,
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
    mixed: str | None,
) -> None:
    pretend(monkeypatch, "keras", __version__="3.15.1")
    pretend(monkeypatch, "jax", __version__="0.6")
    pretend(monkeypatch, "keras.src.backend.config", backend=lambda: "jax")
    pretend(
        monkeypatch,
        "keras.src.dtype_policies.dtype_policy",
        dtype_policy=lambda: SimpleNamespace(name=policy),
    )
    describe_environment(environment, DESCRIPTIONS)

    assert (environment.keras, environment.keras_backend, environment.jax) == (
        "3.15.1",
        "jax",
        "0.6",
    )
    assert environment.mixed_precision == mixed
    assert not environment.legacy_keras


def test_legacy_keras(environment: RecordedEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "tf_keras", __version__="2.21.0")
    describe_environment(environment, DESCRIPTIONS)

    assert (environment.keras, environment.legacy_keras) == ("2.21.0", True)
    assert environment.keras_backend == "tensorflow"


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
@pytest.mark.parametrize(
    ("policy", "mixed"), [("float32", None), ("mixed_float16", "mixed_float16")]
)
def test_the_policy_of_keras_2(
    environment: RecordedEnvironment,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    policy: str,
    mixed: str | None,
) -> None:
    pretend(
        monkeypatch,
        f"{package}.src.mixed_precision.policy",
        global_policy=lambda: SimpleNamespace(name=policy),
    )
    describe_environment(environment, DESCRIPTIONS)

    assert environment.mixed_precision == mixed


@pytest.mark.parametrize("trains", ["keras", "tf_keras"])
def test_of_two_that_are_imported_one_may_be_mixed(
    environment: RecordedEnvironment, monkeypatch: pytest.MonkeyPatch, trains: str
) -> None:
    """A library imports the other for itself."""
    names = dict.fromkeys(("keras", "tf_keras"), "float32") | {trains: "mixed_bfloat16"}
    pretend(
        monkeypatch,
        "tf_keras.src.mixed_precision.policy",
        global_policy=lambda: SimpleNamespace(name=names["tf_keras"]),
    )
    pretend(
        monkeypatch,
        "keras.src.dtype_policies.dtype_policy",
        dtype_policy=lambda: SimpleNamespace(name=names["keras"]),
    )
    describe_environment(environment, DESCRIPTIONS)

    assert environment.mixed_precision == "mixed_bfloat16"
