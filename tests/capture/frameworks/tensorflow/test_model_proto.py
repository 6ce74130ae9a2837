"""tf.data's model under TensorFlow versions that hand it out, and under those that don't."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.model_proto import read_model, tensorflow_has_models

OPERATIONS = "tensorflow.python.ops.gen_experimental_dataset_ops"


class OpError(Exception):
    """TensorFlow's, as autotune that is off raises it."""


class FakeModel:
    """A model of one node, in place of the message of that name."""

    @staticmethod
    def FromString(serialised: bytes) -> Any:  # noqa: N802 - as protobuf calls it
        node = SimpleNamespace(
            id=1,
            name="BatchV2",
            inputs=[],
            num_elements=3,
            processing_time=7,
            bytes_produced=0,
            bytes_consumed=0,
            buffered_elements=0,
            buffered_bytes=0,
            autotune=True,
            parameters=[SimpleNamespace(name="parallelism", state_value=2.0, tunable=True)],
        )
        return SimpleNamespace(nodes={1: node}, gap_times=list(serialised), output=1)


class TensorFlow:
    """Its modules as far as a model is read with them; `operations` is what versions differ in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.eager = True
        self.operations = ModuleType(OPERATIONS)
        modules = {
            "tensorflow.core.framework.model_pb2": {"ModelProto": FakeModel},
            "tensorflow.python.eager.context": {"executing_eagerly": lambda: self.eager},
            "tensorflow.python.framework.errors": {"OpError": OpError},
        }
        monkeypatch.setitem(sys.modules, OPERATIONS, self.operations)
        for name, members in modules.items():
            module = ModuleType(name)
            vars(module).update(members)
            package = name.rpartition(".")[0]
            parent = ModuleType(package)
            setattr(parent, name.rpartition(".")[2], module)
            monkeypatch.setitem(sys.modules, package, parent)
            monkeypatch.setitem(sys.modules, name, module)

    def hands_out(self, resource: Any) -> Any:
        if resource == "no autotune":
            raise OpError
        return SimpleNamespace(numpy=lambda: bytes([4, 5]))


@pytest.fixture
def tensorflow(monkeypatch: pytest.MonkeyPatch) -> TensorFlow:
    return TensorFlow(monkeypatch)


def iterator(resource: str = "resource") -> Any:
    return SimpleNamespace(_iterator_resource=resource)


def test_from_2_17_on_the_operation_hands_out_a_model(tensorflow: TensorFlow) -> None:
    tensorflow.operations.iterator_get_model_proto = tensorflow.hands_out  # type: ignore[attr-defined]
    model = read_model(iterator())

    assert tensorflow_has_models()
    assert model is not None
    assert (model.gaps_us, model.output_id) == ([4, 5], 1)
    assert (model.nodes[0].name, model.nodes[0].parallelism) == ("BatchV2", 2)


def test_before_2_17_there_is_none(tensorflow: TensorFlow) -> None:
    assert not tensorflow_has_models()
    assert read_model(iterator()) is None


def test_iterators_without_a_model(tensorflow: TensorFlow) -> None:
    tensorflow.operations.iterator_get_model_proto = tensorflow.hands_out  # type: ignore[attr-defined]

    assert read_model(iterator("no autotune")) is None
    assert read_model(SimpleNamespace(_multi_device_iterator_resource="two devices")) is None

    tensorflow.eager = False
    assert read_model(iterator()) is None
