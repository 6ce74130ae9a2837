from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.model_proto import NO_MODELS
from pipediag.capture.frameworks.tensorflow.runtime import TensorFlowRuntime


def test_a_tensorflow_before_2_17_has_no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    operations: Any = ModuleType("tensorflow.python.ops.gen_experimental_dataset_ops")
    monkeypatch.setitem(sys.modules, operations.__name__, operations)
    assert TensorFlowRuntime().no_models == NO_MODELS

    operations.iterator_get_model_proto = None
    assert TensorFlowRuntime().no_models is None
