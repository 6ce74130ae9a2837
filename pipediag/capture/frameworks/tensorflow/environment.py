"""Which TensorFlow the script has imported, how it was built and set up, and its devices."""

from __future__ import annotations

import sys
from typing import Any

from pipediag.capture.recorder import version_of
from pipediag.session.recording import RecordedDevice, RecordedEnvironment


def note_version(environment: RecordedEnvironment) -> None:
    """Note that TensorFlow is being imported, and which; the rest is known when that is done."""
    versions = sys.modules.get("tensorflow.python.framework.versions")
    environment.tensorflow = getattr(versions, "__version__", None) or "unknown"


def describe(environment: RecordedEnvironment) -> None:
    """Fill in what is known once the import is done."""
    tensorflow = sys.modules.get("tensorflow")
    context = sys.modules.get("tensorflow.python.eager.context")
    if tensorflow is None or context is None:
        return
    environment.tensorflow = version_of("tensorflow")
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
