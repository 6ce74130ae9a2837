"""Versions, devices and settings of the frameworks that the script imported."""

from __future__ import annotations

import os
import sys
from typing import Any

from pipediag.session.recording import RecordedDevice, RecordedEnvironment


def describe_environment(environment: RecordedEnvironment) -> None:
    """Fill in what the modules that the script has imported say; nothing new is imported."""
    environment.cuda_visible_devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    environment.numpy = _version("numpy")
    environment.jax = _version("jax")
    environment.keras = _version("keras") or _version("tf_keras")
    environment.legacy_keras = "tf_keras" in sys.modules
    _describe_keras(environment)
    _describe_tensorflow(environment)


def note_tensorflow(environment: RecordedEnvironment) -> None:
    """Note that TensorFlow is being imported, and which; the rest is known when that is done."""
    versions = sys.modules.get("tensorflow.python.framework.versions")
    environment.tensorflow = getattr(versions, "__version__", None) or "unknown"


def _version(module: str) -> str | None:
    return getattr(sys.modules.get(module), "__version__", None)


def _describe_keras(environment: RecordedEnvironment) -> None:
    configuration = sys.modules.get("keras.src.backend.config")
    if configuration is not None:
        environment.keras_backend = configuration.backend()
    elif environment.legacy_keras:
        environment.keras_backend = "tensorflow"
    policies = sys.modules.get("keras.src.dtype_policies.dtype_policy")
    if policies is not None:
        name = policies.dtype_policy().name
        environment.mixed_precision = name if name.startswith("mixed") else None


def _describe_tensorflow(environment: RecordedEnvironment) -> None:
    tensorflow = sys.modules.get("tensorflow")
    context = sys.modules.get("tensorflow.python.eager.context")
    if tensorflow is None or context is None:
        return
    environment.tensorflow = _version("tensorflow")
    build = tensorflow.sysconfig.get_build_info()
    environment.cuda_build = bool(build.get("is_cuda_build") or build.get("is_rocm_build"))
    environment.run_functions_eagerly = tensorflow.config.functions_run_eagerly()
    environment.tf_data_debug_mode = _debug_mode()
    current = context.context()
    # Asking for devices would initialise a runtime that the script has not set up yet.
    if current._initialized:
        environment.devices = [_device(name) for name in current.list_logical_devices()]
        environment.logical_cpus_configured = (
            sum(device.kind == "CPU" for device in environment.devices) > 1
        )


def _device(logical: Any) -> RecordedDevice:
    return RecordedDevice(name=logical.name, kind=logical.device_type)


def _debug_mode() -> bool:
    modes = sys.modules.get("tensorflow.python.data.ops.debug_mode")
    return bool(modes is not None and modes.DEBUG_MODE)
