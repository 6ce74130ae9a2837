"""Where several devices took part, a rule speaks of the one that it concerns most."""

from __future__ import annotations

from types import ModuleType

import pytest

from pipediag.rules.device import (
    exposed_host_copy,
    input_gap,
    launch_bound,
    mixed_precision,
    python_gap,
    small_kernels,
    sync_point,
)
from pipediag.session.devices import DeviceActivity
from tests.rules.devices import copies, gpu, launches, on_devices


def slowed(name: str, by: float) -> DeviceActivity:
    """A GPU that each of the rules has the more to say of, the larger this is."""
    return gpu(
        {"input": by, "launch": by, "sync": by, "python": by},
        name=name,
        gaps=[],
        copies=[copies(exposed_ms=by)],
        launches=launches(shorter_than_launch_percent=60.0 + by),
        busy_ms=60.0,
        matmul_ms=30.0 + by,
        tensor_core_ms=0.0,
    )


@pytest.mark.parametrize(
    "rule",
    [
        exposed_host_copy,
        input_gap,
        launch_bound,
        mixed_precision,
        python_gap,
        small_kernels,
        sync_point,
    ],
)
def test_it_is_the_worst_that_is_named(rule: ModuleType) -> None:
    devices = [slowed("GPU:0", 16.0), slowed("GPU:1", 18.0), slowed("GPU:2", 17.0)]
    assert on_devices(rule, *devices).evidence["device"] == "GPU:1"
