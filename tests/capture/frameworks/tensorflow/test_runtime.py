from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow import repeat
from pipediag.capture.frameworks.tensorflow.datasets import batch_bytes
from pipediag.capture.frameworks.tensorflow.model_proto import NO_MODELS
from pipediag.capture.frameworks.tensorflow.runtime import TensorFlowRuntime


def test_a_tensorflow_before_2_17_has_no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    operations: Any = ModuleType("tensorflow.python.ops.gen_experimental_dataset_ops")
    monkeypatch.setitem(sys.modules, operations.__name__, operations)
    assert TensorFlowRuntime().no_models == NO_MODELS

    operations.iterator_get_model_proto = None
    assert TensorFlowRuntime().no_models is None


def test_of_many_large_batches_none_is_taken_ahead_of_its_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nest: Any = ModuleType("tensorflow.python.util.nest")
    nest.flatten = lambda spec, **_: [spec]
    monkeypatch.setitem(sys.modules, nest.__name__, nest)
    monkeypatch.setattr(repeat, "not_handed_once", lambda *_: None)
    shape = SimpleNamespace(rank=3, as_list=lambda: [None, 224, 224])
    images = SimpleNamespace(shape=shape, dtype=SimpleNamespace(size=4))
    monkeypatch.setattr(TensorFlowRuntime, "_spread", lambda *_: None)
    runtime = TensorFlowRuntime()

    assert batch_bytes(images) == 1024 * 224 * 224 * 4
    assert runtime.not_handed_once(None, images, 1) is None
    assert "2 batches" in str(runtime.not_handed_once(None, images, 2))
