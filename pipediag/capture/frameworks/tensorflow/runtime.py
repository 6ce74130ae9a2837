"""How TensorFlow runs steps on batches of tf.data's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow import datasets, model_proto, repeat
from pipediag.capture.frameworks.tensorflow.cancellation import OfOneCall
from pipediag.capture.frameworks.tensorflow.device_sync import DeviceClock
from pipediag.capture.frameworks.tensorflow.tables.reading import TracedTables
from pipediag.capture.runtime import Cancellation, Clock
from pipediag.capture.step_tables import StepTables


class TensorFlowRuntime:
    """Imports what it needs when it is asked: TensorFlow is there by then."""

    def __init__(self) -> None:
        self.pull: Callable[[Any], Any] = next
        """The original of what is hooked, once it is."""

    rows = staticmethod(datasets.batch_rows)
    repeated = staticmethod(repeat.repeated)
    handed_once = staticmethod(repeat.handed_once)
    not_handed_once = staticmethod(repeat.not_handed_once)
    describe_dataset = staticmethod(datasets.facts_of)
    model_of = staticmethod(model_proto.model_of)

    def unobserved(self, dataset: Any) -> Any:
        return repeat.unobserved_iterator(dataset, dataset.element_spec)

    def step_tables(self, functions: Sequence[Any]) -> StepTables:
        return TracedTables(functions)

    @property
    def no_models(self) -> str | None:
        return None if model_proto.tensorflow_has_models() else model_proto.NO_MODELS

    def cancellation(self) -> Cancellation:
        return OfOneCall()

    def clock(self) -> Clock:
        return DeviceClock()
