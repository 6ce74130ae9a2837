"""The user's Keras model compiled otherwise, in the middle of its `fit`, and back again.

Also what its layers are that prepare its inputs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from pipediag.capture.callsites import KERAS, is_keras_class, package_of_module
from pipediag.capture.process import let_pass
from pipediag.capture.replay import NotReplayableError, first_line
from pipediag.capture.replay.changes import ANY_LENGTH
from pipediag.capture.runtime import Settings
from pipediag.session.edits import ANEW, RESULTS_DIFFER
from pipediag.session.recorded_loops import InputLayer
from pipediag.vocabulary import OTHER_OPTIMIZERS, ROW_WISE

_STEPS, _POLICY, _OPTIMIZER = "steps_per_execution", "dtype_policy", "optimizer"
_NAMES = ("jit_compile", "run_eagerly", _STEPS)
_PLAIN = "float32"
"""The usual policy; layers under a mixed one compute in 16 bits already."""
_OF_ANY_KERAS = {*_NAMES, ANEW, ANY_LENGTH}
_OF_KERAS_3 = {*_OF_ANY_KERAS, _POLICY, _OPTIMIZER}

_ROUNDING, _SHARE_OF_SPREAD = 1e-6, 0.01
"""Own choice: outputs that differ by less, of the spread between examples, are the same."""

_KERAS_3 = "keras.src.backend.tensorflow.trainer"
_KERAS_2 = ("tf_keras.src.engine.training", "keras.src.engine.training")
"""Modules of the class that trains: Keras 2 is `keras` beside TensorFlow 2.14 and 2.15."""


class ModelVariants:
    """Keeps a training function for each choice of settings; `fit` looks it up at every step.

    `failed` receives an error in a variant's step, which then runs as the user compiled it.
    """

    def __init__(self, model: Any, failed: Callable[[BaseException], None]) -> None:
        self._model = model
        self._failed = failed
        modules = {base.__module__ for base in type(model).__mro__}
        self._is_keras_3 = _KERAS_3 in modules
        known = self._is_keras_3 or modules.intersection(_KERAS_2)
        self._compiled = _Compiled(model, keras_3=self._is_keras_3) if known else None
        self._own = self._compiled.read() if self._compiled is not None else {}
        self._current: Settings = {}
        self._undo = ExitStack()
        """Makes the model the user's again."""
        self._functions: dict[frozenset[Any], Any] = {}
        self._optimizers: dict[str, Any] = {}
        """Optimizers that were made in place of the model's, by the values of their setting."""

    def check(self, settings: Settings) -> None:
        if settings and self._compiled is None:
            raise NotReplayableError(
                "Only a model in a Keras `fit` on TensorFlow can be compiled otherwise."
            )
        others = settings.keys() - (_OF_KERAS_3 if self._is_keras_3 else _OF_ANY_KERAS)
        if others:
            raise NotReplayableError(
                f"A change of {' or '.join(sorted(others))} is not tried with this version of "
                "Keras: make it by hand."
            )
        if self._is_keras_3 and settings.get("jit_compile"):
            from keras.src.trainers.trainer import model_supports_jit

            if not model_supports_jit(self._model):
                raise NotReplayableError("A layer of the model does not support XLA.")

    def use(self, settings: Settings) -> None:
        """Train with these settings from the next step on; none are the user's own."""
        wanted = {name: one for name, one in settings.items() if one != self._own.get(name)}
        if wanted == self._current:
            return
        self._undo.close()
        self._current = {}
        if wanted:
            with ExitStack() as undo:  # half of them would make a step that nobody wants
                self._change(wanted, undo)
                self._undo = undo.pop_all()
            self._current = wanted

    def same_outputs(
        self, batches: Sequence[Any], others: Sequence[Any], cut: Callable[..., Any]
    ) -> None:
        """Raise NotReplayableError if the model predicts otherwise for the others of the batches,
        which have the same rows with less padding.

        Layers that compute on padding add up other numbers; rounding is far below the differences
        between examples, on which the limit rests. Outputs for each place of a row are compared
        with those of the whole row, `cut` as it is.
        """
        from tensorflow.python.util import nest

        np = sys.modules["numpy"]
        with ExitStack() as undo:
            _take_any_length(self._model, undo)
            for pair in zip(batches, others, strict=True):
                (features, *targets), (fewer, *cut_targets) = map(_parts, pair)
                before, after = self._predicted(features), self._predicted(fewer)
                if _shapes(targets) != _shapes(cut_targets) and _shapes(before) != _shapes(after):
                    self._refuse_unmasked(after)
                    before, cut_targets = cut(features, before)[1], targets
                if _shapes([before, targets]) != _shapes([after, cut_targets]):
                    raise NotReplayableError(f"{RESULTS_DIFFER[2]}: they have another shape.")
                tensors = zip(nest.flatten(before), nest.flatten(after), strict=True)
                for one, other in ((a.numpy(), b.numpy()) for a, b in tensors):
                    most = np.max(np.abs(one - other), initial=0.0)
                    if not most <= _ROUNDING + _SHARE_OF_SPREAD * np.std(one, axis=0).max():
                        raise NotReplayableError(f"{RESULTS_DIFFER[2]} by up to {most:.2g}.")

    def _refuse_unmasked(self, outputs: Any) -> None:
        """Raise unless Keras' own step takes the places that are padding out of the loss."""
        from tensorflow.python.util import nest

        steps = (getattr(type(self._model), name) for name in ("train_step", "compute_loss"))
        own = any(package_of_module(one.__module__) not in KERAS for one in steps)
        if own or any(getattr(one, "_keras_mask", None) is None for one in nest.flatten(outputs)):
            raise NotReplayableError(
                f"{RESULTS_DIFFER[2]}: without a mask of Keras, padding is a part of the loss."
            )

    def _predicted(self, features: Any) -> Any:
        try:
            return self._model(features, training=False)
        except Exception as error:
            let_pass(error)
            failure = first_line(error)
        raise NotReplayableError(f"The model does not take rows of another length: {failure}")

    def _change(self, wanted: Settings, undo: ExitStack) -> None:
        model, compiled = self._model, self._compiled
        assert compiled is not None
        undo.callback(setattr, model, "train_function", model.train_function)
        undo.callback(compiled.write, self._own)
        compiled.write({**self._own, **wanted})
        if _POLICY in wanted:
            use_policy(model, wanted[_POLICY], undo)
        if _OPTIMIZER in wanted:
            undo.callback(setattr, model, "optimizer", model.optimizer)
            kind = wanted[_OPTIMIZER]
            if kind not in self._optimizers:
                self._optimizers[kind] = _other_optimizer(model, kind)
            model.optimizer = self._optimizers[kind]
        if ANY_LENGTH in wanted:
            _take_any_length(model, undo)
        key = frozenset(wanted.items())
        if key not in self._functions:
            self._functions[key] = self._guarded(compiled.train_function())
        model.train_function = self._functions[key]

    def _guarded(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def train(iterator: Any) -> Any:
            try:
                return function(iterator)
            except StopIteration:
                raise
            except Exception as error:
                let_pass(error)
                self._failed(error)
                self.use({})
                return self._model.train_function(iterator)

        return train


def _parts(batch: Any) -> tuple[Any, ...]:
    return batch if isinstance(batch, tuple) else (batch,)


def _shapes(parts: Any) -> list[Any]:
    from tensorflow.python.util import nest

    return [tuple(one.shape) for one in nest.flatten(parts)]


class _Compiled:
    """Settings of a compiled model, read and set without compiling it anew.

    Properties of Keras 2 lack, or drop compiled functions when set; what they stand for is set. The
    number of steps is a variable there: a compiled function of several reads it at each call.
    """

    def __init__(self, model: Any, *, keras_3: bool) -> None:
        self._model = model
        self._attributes = {name: name if keras_3 else f"_{name}" for name in _NAMES}

    def read(self) -> Settings:
        found = {name: getattr(self._model, own) for name, own in self._attributes.items()}
        return {**found, _STEPS: int(found[_STEPS])}

    def write(self, settings: Settings) -> None:
        """Set them for the training function that is made next, and while it runs."""
        for name, attribute in self._attributes.items():
            assign = getattr(getattr(self._model, attribute), "assign", None)
            if assign is not None:
                assign(settings[name])
            else:
                setattr(self._model, attribute, settings[name])

    def train_function(self) -> Callable[[Any], Any]:
        model, graph = self._model, "train_tf_function"
        with ExitStack() as undo:
            if hasattr(model, graph):  # that of Keras 2, which a TensorBoard callback writes
                undo.callback(setattr, model, graph, getattr(model, graph))
            model.make_train_function(force=True)
        function: Callable[[Any], Any] = model.train_function
        return function


def use_policy(model: Any, name: str, undo: ExitStack) -> None:
    """Let layers of a built model compute in 16 bits, with their own variables.

    All do but layers whose policy the user chose, and those whose results are the model's: losses
    are computed from these, and Keras' guide keeps them in float32.
    """
    from keras.src import dtype_policies

    outputs = getattr(model, "outputs", None) or []
    histories = [getattr(output, "_keras_history", None) for output in outputs]
    last = [one.operation for one in histories if one is not None] or list(model.layers)[-1:]
    # Keras 3.0 keeps in a layer whatever it is given.
    wanted = dtype_policies.get(name)
    for layer in list(model._flatten_layers(include_self=True)):
        own = layer.dtype_policy
        if own.name == _PLAIN and not is_among(layer, last):
            undo.callback(setattr, layer, "dtype_policy", own)
            layer.dtype_policy = wanted


_SPEC = "_manual_input_spec"
"""Attribute in which functional models of each Keras keep the shapes that they check their inputs
for, if those are not the ones that they were built with."""


def _take_any_length(model: Any, undo: ExitStack) -> None:
    """Let a model, and models in it, take rows of another length than their inputs declare."""
    for layer in all_layers(model):
        if any(base.__name__ == "Functional" for base in type(layer).__mro__):
            # Not by `setattr`, with which Keras would track it.
            own = vars(layer)
            back = partial(own.update, {_SPEC: own[_SPEC]}) if _SPEC in own else None
            undo.callback(back or partial(own.pop, _SPEC, None))
            own[_SPEC] = None


def _other_optimizer(model: Any, how: str) -> Any:
    """Make an optimizer with variables of its own, which goes on from the moments that there
    are."""
    own = model.optimizer
    # Found as the script would find it, so that it is what the script can have.
    ours = importlib.import_module("pipediag.optimizers")
    kind = getattr(ours, OTHER_OPTIMIZERS[how][type(own).__name__])
    config = {**own.get_config(), "name": f"pipediag_{how}"}
    averages: list[Any] = []
    if how == ROW_WISE:
        # Averages of the weights pass over the whole table, whatever updates it.
        config["use_ema"] = False
        averages = getattr(own, "_model_variables_moving_average", None) or []
    other = kind.from_config(config)
    other.build(model.trainable_variables)
    left_out = {id(one) for one in averages}
    theirs = [one for one in own.variables if id(one) not in left_out]
    for mine, value in zip(other.variables, theirs, strict=True):
        mine.assign(value)
    return other


_KINDS = frozenset(
    "CategoryEncoding Discretization HashedCrossing Hashing IntegerLookup Normalization "
    "StringLookup TextVectorization".split()
)
"""Layers of which none is trained, and each gives the same for the same input."""


def input_layers(model: Any) -> list[InputLayer]:
    """Return the layers of such a kind that a model holds, and which can be taken off it."""
    graph = _graph_of(model)
    movable, tensors = _front_of(graph) if graph is not None else ([], [])
    ends = [tensor._keras_history[0] for tensor in tensors]
    found = [layer for layer in all_layers(model) if is_keras_class(type(layer), _KINDS)]
    # A TextVectorization is made of a StringLookup.
    parts = [part for layer in found for part in all_layers(layer) if part is not layer]
    return [
        InputLayer(
            name=layer.name,
            kind=type(layer).__name__,
            behind_input=is_among(layer, movable),
            handed_on=is_among(layer, ends),
        )
        for layer in found
        if not is_among(layer, parts)
    ]


def fixed_lengths(model: Any) -> dict[str, int]:
    """Return the lengths of rows that the inputs of a model demand, by their names."""
    sequential = any(is_keras_class(base, ("Sequential",)) for base in type(model).__mro__)
    # Keras 3 looks at no length of a Sequential's input, and Keras 2 not of one that it made.
    if not getattr(model, "_has_explicit_input_shape", not sequential):
        return {}
    listed = getattr(model, "inputs", None)
    inputs = [one for one in listed if hasattr(one, "_keras_history")] if listed else []
    # Keras 2 has TensorFlow's own shapes, of which one may be unknown.
    ranks = [one.shape.rank if hasattr(one.shape, "rank") else len(one.shape) for one in inputs]
    rows = [one for one, rank in zip(inputs, ranks, strict=True) if rank == 2]
    return {one.name: int(one.shape[1]) for one in rows if one.shape[1]}


def inseparable(model: Any) -> bool:
    """Return True for a model that can't be made anew from its layers: of a class of the script's,
    under a distribution strategy, or without a graph."""
    own = package_of_module(type(model).__module__) not in KERAS
    distributed = getattr(model, "_distribute_strategy", None) is not None
    return own or distributed or _graph_of(model) is None


def _graph_of(model: Any) -> Any:
    """Return the functional model that a model is, or that a Sequential keeps."""
    inner = getattr(model, "_functional", None)
    graph = model if inner is None else inner
    known = ("_inputs_struct", "_nodes_by_depth", "inputs", "outputs")
    return graph if all(hasattr(graph, name) for name in known) else None


def _front_of(graph: Any) -> tuple[list[Any], list[Any]]:
    """Return the layers that see nothing but inputs and each other; and what the rest takes: their
    symbolic outputs, and inputs that go there as they are."""
    ready = {id(tensor): tensor for tensor in graph.inputs}
    layers: dict[int, Any] = {}
    wanted = {id(tensor) for tensor in graph.outputs}
    by_depth = sorted(graph._nodes_by_depth.items(), reverse=True)
    for node in (one for _, nodes in by_depth for one in nodes if not one.is_input):
        layer, read = node.operation, node.input_tensors
        if is_keras_class(type(layer), _KINDS) and all(id(tensor) in ready for tensor in read):
            layers[id(layer)] = layer
            ready.update((id(tensor), tensor) for tensor in node.output_tensors)
        else:
            wanted |= {id(tensor) for tensor in read}
    return list(layers.values()), [tensor for key, tensor in ready.items() if key in wanted]


def is_among(layer: Any, layers: Iterable[Any]) -> bool:
    """Return True if it is one of these, whatever `==` says."""
    return any(layer is one for one in layers)


def all_layers(model: Any) -> list[Any]:
    """Return the layers of a model or a layer, in submodels too."""
    flatten = getattr(model, "_flatten_layers", None)
    try:
        return list(flatten() if flatten is not None else model.layers)
    except Exception:  # a class of the script's may answer with anything
        return []
