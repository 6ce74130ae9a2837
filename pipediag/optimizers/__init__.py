"""Keras optimizers whose update touches only the rows of a table that the batch looked up.

An embedding's gradient is sparse: it names the rows of the batch and says nothing of the others.
Keras' own Adam makes it dense and passes over the whole table and both of its moments in every
step. These optimizers, known in the field as lazy or row-wise, read, change and write the batch's
rows alone, and do with every dense gradient exactly what Keras' own do.

For Keras 3 on TensorFlow. Results differ from those of Keras' own optimizers for tables; each
class says how, and docs/embeddings.md when it matters.
"""

from pipediag.optimizers.lazy import (
    LazyAdagrad,
    LazyAdam,
    LazyAdamax,
    LazyAdamW,
    LazyRMSprop,
    LazySGD,
)

__all__ = ["LazyAdagrad", "LazyAdam", "LazyAdamW", "LazyAdamax", "LazyRMSprop", "LazySGD"]
