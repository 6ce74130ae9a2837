"""How a Keras model ends in a softmax over a vocabulary: its last layer, and the loss behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipediag.capture.frameworks.keras.input_layers import graph_of, unsplit
from pipediag.capture.packages import KERAS, package_of_module
from pipediag.capture.replay import NotReplayableError

_SOFTMAX = "softmax"
_LINEAR = "linear"
_STEP = ("train_step", "compute_loss", "compute_metrics", "make_train_function")
"""Methods of a model that make its step."""
_TERMS = ("kernel_regularizer", "bias_regularizer", "activity_regularizer")
_FORCED = ("kernel_constraint", "bias_constraint")


@dataclass(frozen=True)
class VocabularyEnd:
    """The last layer of a model, which has a column of weights for each class."""

    layer: Any
    features: Any
    """What it multiplies, symbolic."""
    one_hot: bool
    """Whether a label is a number for each class, and not the class itself."""
    reduction: str | None
    """Of the loss, by Keras' name for it."""


def vocabulary_end(model: Any) -> VocabularyEnd:
    """Where a model on Keras 3 ends in a `Dense` of all classes under a plain cross-entropy.

    Raises:
        NotReplayableError: it does not, or something else belongs to its step or its loss.
    """
    refusal = unsplit(model)
    if refusal is not None:
        raise NotReplayableError(refusal)
    own = [name for name in _STEP if name in vars(model)]
    if own:
        raise NotReplayableError(f"The model has a `{own[0]}` of its own, which makes its step.")
    graph = graph_of(model)
    if len(graph.outputs) != 1 or graph._outputs_struct is not graph.outputs[0]:
        raise NotReplayableError(
            "The model gives more than one tensor, or gives it by name, so it has no one loss."
        )
    node, softmax = _node_of(graph.outputs[0]), False
    if _is_softmax(node.operation):
        node, softmax = _node_of(node.input_tensors[0]), True
    layer = node.operation
    _check_last_layer(graph, layer)
    activation = _activation_of(layer)
    if activation == _SOFTMAX and not softmax:
        softmax = True
    elif activation != _LINEAR:
        raise NotReplayableError(
            f"The last layer, `{layer.name}`, computes `{activation}` before the loss takes a "
            "softmax."
        )
    one_hot, reduction = _of_loss(model, softmax=softmax)
    return VocabularyEnd(layer, node.input_tensors[0], one_hot, reduction)


def _node_of(tensor: Any) -> Any:
    history = tensor._keras_history
    return history.operation._inbound_nodes[history.node_index]


def _is_softmax(operation: Any) -> bool:
    if not _is_keras_own(operation):
        return False
    if type(operation).__name__ == "Softmax":
        return getattr(operation, "axis", None) == -1
    return type(operation).__name__ == "Activation" and _activation_of(operation) == _SOFTMAX


def _activation_of(operation: Any) -> str | None:
    return getattr(getattr(operation, "activation", None), "__name__", None)


def _is_keras_own(operation: Any) -> bool:
    return package_of_module(type(operation).__module__) in KERAS


def _check_last_layer(graph: Any, layer: Any) -> None:
    if type(layer).__name__ != "Dense" or not _is_keras_own(layer):
        raise NotReplayableError(
            f"The model ends in `{layer.name}` ({type(layer).__name__}) and not in a `Dense` with "
            "a column of weights for each class."
        )
    if sum(node.operation is layer for node in _nodes(graph)) != 1:
        raise NotReplayableError(f"The model calls its last layer, `{layer.name}`, twice.")
    if getattr(layer, "lora_enabled", False) or getattr(layer, "quantization_mode", None):
        raise NotReplayableError(
            f"The weights of the last layer, `{layer.name}`, are computed from others, by LoRA or "
            "from quantized ones."
        )
    if not layer.trainable or not layer.kernel.trainable:
        raise NotReplayableError(f"The last layer, `{layer.name}`, is not trained.")
    terms = [name for name in (*_TERMS, *_FORCED) if getattr(layer, name, None) is not None]
    if terms:
        raise NotReplayableError(
            f"The last layer, `{layer.name}`, has a {terms[0]}, which takes the weights or logits "
            "of all classes."
        )


def _nodes(graph: Any) -> Iterator[Any]:
    for nodes in graph._nodes_by_depth.values():
        yield from nodes


def _of_loss(model: Any, *, softmax: bool) -> tuple[bool, str | None]:
    """Whether labels are one-hot, and how the loss is reduced."""
    from keras.src import losses

    given = getattr(model, "loss", None)
    if isinstance(given, dict | list | tuple) or given is None:
        raise NotReplayableError("The loss is given for outputs by their names, or not at all.")
    if getattr(model._compile_loss, "_user_loss_weights", None) is not None:
        raise NotReplayableError("The loss has `loss_weights`, which a sampled one was not given.")
    loss = losses.get(given) if isinstance(given, str) else given
    sparse = loss is losses.sparse_categorical_crossentropy or (
        type(loss) is losses.SparseCategoricalCrossentropy
    )
    one_hot = loss is losses.categorical_crossentropy or (
        type(loss) is losses.CategoricalCrossentropy
    )
    if not sparse and not one_hot:
        name = getattr(loss, "__name__", type(loss).__name__)
        raise NotReplayableError(f"The loss is `{name}`, and no categorical cross-entropy.")
    arguments = getattr(loss, "_fn_kwargs", {})
    if arguments.get("label_smoothing") or arguments.get("ignore_class") is not None:
        raise NotReplayableError(
            "The loss smooths labels or ignores a class, which a sampled softmax does not."
        )
    if arguments.get("axis", -1) != -1:
        raise NotReplayableError("The loss takes its classes from another axis than the last.")
    if bool(arguments.get("from_logits")) == softmax:
        wants, gives = ("logits", "probabilities") if softmax else ("probabilities", "logits")
        raise NotReplayableError(
            f"The loss takes {wants} and the model gives {gives}: set `from_logits` right first."
        )
    return one_hot, getattr(loss, "reduction", "sum_over_batch_size")
