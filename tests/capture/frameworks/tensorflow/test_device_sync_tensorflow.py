from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import time
import tensorflow as tf
from pipediag.capture.frameworks.tensorflow.device_sync import DeviceClock

tf.config.set_visible_devices([], "GPU")
print(DeviceClock().settled_ns(7))
tf.random.normal((500, 500)) @ tf.random.normal((500, 500))
before = time.monotonic_ns()
print(DeviceClock(["/device:CPU:0"]).settled_ns(before) > before)
"""


def test_work_behind_python_is_waited_for() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    assert said.stdout.split() == ["7", "True"]
