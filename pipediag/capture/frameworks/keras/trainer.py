"""How Keras trains for the script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from pipediag.capture.callsites import locals_of
from pipediag.capture.frameworks.keras import facts, tables
from pipediag.capture.frameworks.keras.callbacks import named
from pipediag.capture.frameworks.keras.compiled import CompiledVariants
from pipediag.capture.runtime import Variants
from pipediag.session.edits import SkipCallback


class KerasTrainer:
    """By `fit`, whose frame tells of the model."""

    name = "Keras"
    phase_of = staticmethod(facts.phase_of)
    fed_model = staticmethod(facts.fed_model)
    passes_a_batch_on = staticmethod(facts.passes_a_batch_on)
    data_walker = staticmethod(facts.data_walker)
    planned_steps = staticmethod(facts.planned_steps)
    batches_per_call = staticmethod(facts.batches_per_call)
    describe = staticmethod(facts.describe_fit)
    known_tables = staticmethod(tables.known_tables)
    vocabularies = staticmethod(tables.vocabularies)
    batch_size = staticmethod(facts.batch_size_of)
    callbacks_of = staticmethod(facts.callback_list)

    def model_of(self, frame: FrameType) -> Any:
        return locals_of(frame)["self"]

    def variants(self, model: Any, failed: Callable[[BaseException], None]) -> Variants:
        return CompiledVariants(model, failed)

    def callbacks_named(self, callbacks: Any, skipped: Sequence[SkipCallback]) -> list[Any]:
        return named(callbacks, skipped)
