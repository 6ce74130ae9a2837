"""A Keras model whose softmax over a vocabulary is trained with a few classes that are drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pipediag.capture.frameworks.keras.compiled_alike import compile_alike
from pipediag.capture.frameworks.keras.input_layers import graph_of
from pipediag.capture.frameworks.keras.optimizers_alike import alike, check_alike
from pipediag.capture.frameworks.keras.places_kept import places_kept
from pipediag.capture.frameworks.keras.vocabulary_ends import VocabularyEnd, vocabulary_end
from pipediag.capture.replay import NotReplayableError

_SEED = 7
"""Given, as a draw without one takes its seed from those of the script."""


class SampledSoftmax:
    """A model of the same layers, but for the last, and with a row of weights for each class.

    These rows, and an optimizer like the model's own for all that it trains, are its own: nothing
    of the user's model is changed by that, and the bias that they share is put back as all is.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._made: tuple[VocabularyEnd, Any] | None = None

    def check(self, drawn: int) -> None:
        """See whether the model can be trained with so many drawn classes.

        Raises:
            NotReplayableError: it can't.
        """
        end, _ = self._rest()
        if not 0 < drawn < end.layer.units:
            raise NotReplayableError(
                f"Of {end.layer.units} classes, {drawn} can't be drawn beside the right one."
            )
        check_alike(self._model.optimizer)

    def train_function(self, drawn: int) -> Callable[[Any], Any]:
        """A step of it, compiled as the user's model is at this moment."""
        end, rest = self._rest()
        compile_alike(
            rest,
            self._model,
            optimizer=alike(self._model.optimizer, "pipediag_sampled"),
            loss=_loss(end, rest, drawn),
        )
        # Metrics as accuracy compare all classes, which there are none of; what they have counted
        # stays, so that callbacks still find it.
        rest.compute_metrics = lambda *_, **__: rest.get_metrics_result()
        rest.optimizer.build(rest.trainable_variables)
        rest.make_train_function(force=True)
        function: Callable[[Any], Any] = rest.train_function
        return function

    def _rest(self) -> tuple[VocabularyEnd, Any]:
        if self._made is None:
            end = vocabulary_end(self._model)
            self._made = end, _without_last_layer(self._model, end)
        return self._made


def _without_last_layer(model: Any, end: VocabularyEnd) -> Any:
    from keras.src.models.functional import Functional
    from tensorflow.python.ops import array_ops

    graph = graph_of(model)
    with places_kept(graph), warnings.catch_warnings():
        # About names of inputs given as a dict, which are the user's own.
        warnings.simplefilter("ignore")
        rest = Functional(graph._inputs_struct, end.features, name=model.name)
    # Labels may be given by the name of what the model gives.
    rest.output_names = list(graph.output_names)
    kernel = end.layer.kernel
    rest.rows = rest.add_weight(
        shape=(end.layer.units, kernel.shape[0]),
        initializer=lambda *_, **__: array_ops.transpose(kernel.value),
        dtype=kernel.dtype,
        name="rows",
    )
    rest.biases = end.layer.bias
    return rest


def _loss(end: VocabularyEnd, rest: Any, drawn: int) -> Any:
    """The sampled one of each label, weighted, masked and reduced by Keras as the model's own."""
    from keras.src.losses.losses import LossFunctionWrapper
    from tensorflow.python.ops import array_ops, math_ops, nn_impl

    classes = end.layer.units

    def sampled(labels: Any, vectors: Any) -> Any:
        right = math_ops.argmax(labels, axis=-1) if end.one_hot else labels
        biases = array_ops.zeros([classes]) if rest.biases is None else rest.biases.value
        losses = nn_impl.sampled_softmax_loss_v2(
            rest.rows.value,
            biases,
            array_ops.reshape(math_ops.cast(right, "int64"), [-1, 1]),
            array_ops.reshape(vectors, [-1, end.features.shape[-1]]),
            num_sampled=drawn,
            num_classes=classes,
            seed=_SEED,
        )
        return array_ops.reshape(losses, array_ops.shape(vectors)[:-1])

    return LossFunctionWrapper(sampled, reduction=end.reduction, name="sampled_softmax")
