"""Waiting until accelerators have done what they were given: they compute behind Python's back."""

from __future__ import annotations

import time
from collections.abc import Sequence


class DeviceClock:
    """Says when work is done, on a machine with accelerators or without."""

    def __init__(self, devices: Sequence[str] | None = None) -> None:
        self._devices = _accelerators() if devices is None else list(devices)

    def settled_ns(self, now_ns: int) -> int:
        """When all that was launched by now was done: `now_ns` where nothing runs behind it."""
        if not self._devices:
            return now_ns
        from tensorflow.python.eager import context
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import gen_sync_ops

        for device in self._devices:
            with ops.device(device):
                gen_sync_ops.SyncDevice()
        context.async_wait()
        return time.monotonic_ns()


def _accelerators() -> list[str]:
    from tensorflow.python.framework import config

    return [device.name for device in config.list_logical_devices("GPU")]
