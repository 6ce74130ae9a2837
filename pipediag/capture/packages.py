"""Packages by name, and what we take each of them for: the one place that lists them.

A framework that is added is a line in the first two, or three.
"""

from __future__ import annotations

KERAS = frozenset({"keras", "tf_keras"})
"""Keras, and Keras 2 as a package of its own."""

FRAMEWORKS = KERAS | {"tensorflow", "jax", "jaxlib"}
"""What a line of theirs takes is TensorFlow's, Keras's or JAX's time, not that of a user's line."""

ON_BEHALF = KERAS | frozenset(
    "keras_core keras_cv keras_hub keras_nlp keras_tuner autokeras "
    "tensorflow_addons tensorflow_datasets tensorflow_decision_forests tensorflow_hub "
    "tensorflow_io tensorflow_probability tensorflow_ranking tensorflow_recommenders "
    "tensorflow_text tensorflow_transform tf_agents torch torchvision lightning pytorch_lightning "
    "accelerate datasets transformers flax optax numpy pandas scipy sklearn "
    "alive_progress fastprogress more_itertools rich toolz tqdm "
    "IPython etils ipykernel tree wrapt".split()
)
"""They make or consume a pipeline for the line that calls them.

Not all that is installed does: a user's own package may be, and its lines are those to be told of.
"""


def package_of_module(module: str) -> str:
    """The top-level package of a module's dotted name."""
    return module.partition(".")[0]
