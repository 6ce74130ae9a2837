"""Keras 3 on any backend, and Keras 2 under each name that it has had."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from pipediag.capture.callsites import locals_of
from pipediag.capture.frameworks import Hook
from pipediag.capture.frameworks.keras import facts
from pipediag.capture.frameworks.keras.callbacks import named
from pipediag.capture.frameworks.keras.hooks import KERAS_2, KerasHooks
from pipediag.capture.frameworks.keras.model_variants import ModelVariants
from pipediag.capture.recorder import version_of
from pipediag.capture.runtime import Variants
from pipediag.capture.watching.watchers import Watchers
from pipediag.session.edits import SkipCallback
from pipediag.session.recording import RecordedEnvironment

_POLICIES = (
    ("tf_keras.src.mixed_precision.policy", "global_policy"),
    ("keras.src.mixed_precision.policy", "global_policy"),
    ("keras.src.dtype_policies.dtype_policy", "dtype_policy"),
)
"""Where each Keras says what layers compute in that were given no policy of their own. Several may
be imported, of which one trains: a library as `transformers` imports its own."""


class KerasTrainer:
    """Trains by `fit`, whose frame tells of the model."""

    name = "Keras"
    phase_of = staticmethod(facts.phase_of)
    fed_model = staticmethod(facts.fed_model)
    passes_a_batch_on = staticmethod(facts.passes_a_batch_on)
    data_walker = staticmethod(facts.data_walker)
    planned_steps = staticmethod(facts.planned_steps)
    batches_per_call = staticmethod(facts.batches_per_call)
    describe = staticmethod(facts.describe_fit)
    known_tables = staticmethod(facts.known_tables)
    vocabularies = staticmethod(facts.vocabularies)
    batch_size = staticmethod(facts.batch_size_of)
    callbacks_of = staticmethod(facts.callback_list)

    def model_of(self, frame: FrameType) -> Any:
        return locals_of(frame)["self"]

    def variants(self, model: Any, failed: Callable[[BaseException], None]) -> Variants:
        return ModelVariants(model, failed)

    def callbacks_named(self, callbacks: Any, skipped: Sequence[SkipCallback]) -> list[Any]:
        return named(callbacks, skipped)


class Keras:
    """Trains for the script: by TensorFlow, or on batches of tf.data's by something else."""

    trainer = KerasTrainer()
    looks_at_training = {  # noqa: RUF012
        "keras.src.saving.saving_lib": ("save_model", "save_weights_only"),
        "keras.src.legacy.saving.legacy_h5_format": (
            "save_model_to_hdf5",
            "save_weights_to_hdf5_group",
        ),
        "keras.src.layers.layer": ("Layer.get_weights",),
        **{
            f"{keras_2}.{module}": paths
            for keras_2 in KERAS_2
            for module, paths in (
                ("saving.saving_api", ("save_model", "save_weights")),
                ("engine.base_layer", ("Layer.get_weights",)),
                ("engine.training", ("Model.get_weights",)),
            )
        },
    }

    def hooks(self, watchers: Watchers) -> Iterator[tuple[str, Hook]]:
        return KerasHooks(watchers).by_module()

    def describe(self, environment: RecordedEnvironment) -> None:
        environment.keras = version_of("keras") or version_of("tf_keras")
        environment.legacy_keras = "tf_keras" in sys.modules
        # JAX is only described: its training is seen through Keras's loops on tf.data.
        environment.jax = version_of("jax")
        configuration = sys.modules.get("keras.src.backend.config")
        if configuration is not None:
            environment.keras_backend = configuration.backend()
        elif environment.legacy_keras:
            environment.keras_backend = "tensorflow"
        policies = (
            str(getattr(sys.modules[module], function)().name)
            for module, function in _POLICIES
            if module in sys.modules
        )
        mixed = (name for name in policies if name.startswith("mixed"))
        environment.mixed_precision = next(mixed, None)
