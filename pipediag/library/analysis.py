"""Analyses of a dataset with what trains on it, or by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from pipediag.capture import Capture, StopScript
from pipediag.capture.callsites import KERAS, call_site, package_of_module
from pipediag.capture.measuring.kept_state import NotRestoredError, TrainingState, lacks_memory
from pipediag.capture.replay import first_line
from pipediag.errors import PipediagError
from pipediag.library.measurement import Measurement
from pipediag.library.result import Result
from pipediag.session.messages import Ended
from pipediag.vocabulary import Call, OwnEnding

_NEW_VARIABLES = (
    "The first step created {count} variables, which keep what this analysis has trained. Build "
    "the model before you analyse it."
)

Work = Callable[[Capture], None]
"""Runs what is to be measured, under the capture that it is given."""

# Keras 2 keeps the last one, with the validation data, for the next `fit`.
_CHANGED_BY_FIT = ("train_function", "history", "stop_training", "_eval_data_handler")
_ABSENT = object()
_BUILT = (
    "The model was not built yet: it was built from the shapes of the dataset's elements, and "
    "stays built, with its first weights."
)
_AS_IT_IS = (
    "The dataset itself was read. If it reshuffles in each pass, the next pass has a different "
    "order than it would have had."
)


def analyze(
    dataset: Any,
    model: Any,
    *,
    epochs: int = 1,
    steps_per_epoch: int | None = None,
    budget: float = 90.0,
    steps: int | None = None,
    **fit: Any,
) -> Result:
    """Train for as long as it takes to find where the time goes, then restore everything.

    This does for a dataset and a model what `pipediag analyze` does for a script: warm-up, a window
    without a profiler, a profile, and trials of what is recommended, in the running loop. Training
    ends as soon as that is done, or after `epochs`. Afterwards all variables and the states of
    Python's, NumPy's and TensorFlow's random generators are what they were before.

    Args:
        dataset: a function without arguments that makes a `tf.data.Dataset`; or a dataset, whose
            operations are then not known, so that nothing is tried with it. It is read itself: if
            it reshuffles in each pass, its next pass has another order.
        model: a compiled Keras model on TensorFlow, whose `fit` is called; or a function that makes
            one training step with one batch. A model that is not built yet is built from the shapes
            of the dataset's elements, and stays built.
        epochs: as many as your training has: the run is projected to their end.
        steps_per_epoch: batches of an epoch, if fewer than the dataset has.
        budget: seconds for trials; 0 tries nothing.
        steps: measured steps; None adapts to their length.
        **fit: further arguments of Keras's `fit`, such as `class_weight` or `callbacks`.

    Raises:
        PipediagError: nothing can be measured, for the reason that it names.
        TypeError: `model` is something else, or arguments for `fit` came with a function.
    """
    if epochs < 1:
        raise ValueError(f"epochs is {epochs}; it must be 1 or more.")
    keras_model = _keras_package(model) is not None
    if not keras_model and not callable(model):
        raise TypeError(f"model is a {type(model).__name__}; give a Keras model or a function.")
    if fit and not keras_model:
        raise TypeError(f"{', '.join(fit)}: these arguments are only for a Keras model's `fit`.")

    def work(capture: Capture) -> None:
        data = _recorded(capture, dataset)
        if keras_model:
            arguments = {"epochs": epochs, "steps_per_epoch": steps_per_epoch, **fit}
            _fit(model, data, arguments, capture.note)
        else:
            _train(capture, data, model, epochs, steps_per_epoch)

    return _measured(work, "analyze", budget, steps)


def analyze_input(dataset: Any, *, budget: float = 90.0, steps: int | None = None) -> Result:
    """Take batches of a pipeline as fast as they come, and find what limits it.

    Nothing is trained, so the result says nothing about training: what a faster pipeline gains
    there depends on how long a step takes. Trials compare the pipeline alone.

    Args:
        dataset: as for `analyze`. A dataset that ends is read again from its beginning.
        budget: seconds for trials; 0 tries nothing.
        steps: measured batches; None adapts to their length.

    Raises:
        PipediagError: nothing can be measured, for the reason that it names.
    """

    def work(capture: Capture) -> None:
        _take_for_ever(capture, _recorded(capture, dataset))

    return _measured(work, "analyze_input", budget, steps)


def _measured(work: Work, call: Call, budget: float, steps: int | None) -> Result:
    """Run `work` as the script of an analysis, and return its result.

    Afterwards variables and random numbers are what they were, and no hook is left. What `work`
    raises is raised.
    """
    if budget < 0:
        raise ValueError(f"budget is {budget}; it must be a time in seconds, or 0.")
    if "tensorflow" not in sys.modules:
        raise PipediagError("TensorFlow is not imported, so there is nothing to measure.")
    lack = lacks_memory()
    if lack is not None:
        raise PipediagError(f"nothing was measured: {lack}.")
    state = TrainingState()
    measurement = Measurement(
        call, call_site(), steps=steps, budget_s=budget, before_training=state.keep_new
    )
    try:
        try:
            outcome = _outcome(work, measurement.capture, call)
        except BaseException:
            measurement.capture.leave_alone()
            raise
        else:
            unknown = len(state.unknown())
            if unknown:
                measurement.capture.note(_NEW_VARIABLES.format(count=unknown))
            measurement.leave(Ended(outcome, 0 if outcome == "finished" else None))
        finally:
            _restore(state)
    except BaseException:
        measurement.give_up()
        raise
    return measurement.finish()


def _outcome(work: Work, capture: Capture, call: Call) -> OwnEnding:
    try:
        work(capture)
    except StopScript:
        # Without a consumer no loop waits; pipelines are tried when the loop is over.
        return "finished" if call == "analyze_input" else "stopped"
    return "finished"


def _restore(state: TrainingState) -> None:
    try:
        state.restore()
    except NotRestoredError as error:
        raise PipediagError(
            f"the model is not what it was before the analysis: {error}. Load its weights "
            "again, and analyse it with `budget=0`, which tries nothing."
        ) from error


def _keras_package(model: Any) -> str | None:
    """Return the package of a model of Keras 3 or 2, by the class that it inherits from."""
    packages = (
        package_of_module(kind.__module__)
        for kind in type(model).__mro__
        if kind.__name__ == "Model"
    )
    return next((name for name in packages if name in KERAS), None)


def _fit(
    model: Any, dataset: Any, arguments: Mapping[str, Any], note: Callable[[str], None]
) -> None:
    """Call `fit` once, silently by default; what it sets on the model is restored."""
    _refuse_other_backends(model)
    if getattr(model, "optimizer", None) is None:
        raise PipediagError(
            "the model is not compiled, so it can't train. Nothing was measured. Call "
            "`model.compile(...)` first."
        )
    if not model.built:
        # Otherwise Keras takes a batch to build it before any step: its first weights are lost.
        _build(model, dataset.element_spec)
        note(_BUILT)
    own = {name: vars(model).get(name, _ABSENT) for name in _CHANGED_BY_FIT}
    if not getattr(model.optimizer, "built", True):
        # Otherwise its first step makes its variables, and their first values are lost.
        model.optimizer.build(model.trainable_variables)
    # Traced anew: what a step does is read from its trace.
    model.train_function = None
    try:
        model.fit(dataset, **{"verbose": 0, **arguments})
    finally:
        for name, value in own.items():
            if value is _ABSENT:
                vars(model).pop(name, None)
            else:
                setattr(model, name, value)


def _build(model: Any, elements: Any) -> None:
    """Call the model with symbolic inputs of the shapes that `fit` would take."""
    # A list is one input of many parts; a tuple is inputs, targets and weights.
    inputs = elements[0] if isinstance(elements, tuple) else elements
    # Neither is imported here, but by the program that made the model.
    keras, tensorflow = sys.modules[_keras_package(model) or "keras"], sys.modules["tensorflow"]
    try:
        model(
            tensorflow.nest.map_structure(
                lambda spec: keras.Input(batch_shape=tuple(spec.shape), dtype=spec.dtype.name),
                inputs,
            )
        )
    except Exception as error:
        raise PipediagError(
            "the model is not built, and can't be built from the shapes of the dataset's elements "
            f"({first_line(error)}), so its first weights could not be restored. Nothing was "
            "measured. Call `model.build(...)`, or the model with one batch, first."
        ) from error


def _refuse_other_backends(model: Any) -> None:
    keras = sys.modules.get("keras")
    of_keras_3 = any(kind.__module__.startswith("keras.src") for kind in type(model).__mro__)
    config = getattr(keras, "config", None)
    if not of_keras_3 or config is None or not hasattr(config, "backend"):
        return
    backend = config.backend()
    if backend != "tensorflow":
        raise PipediagError(
            f"the model trains on {backend}, whose variables can't be restored. Nothing was "
            "measured. Run `pipediag analyze` on your script instead."
        )


def _recorded(capture: Capture, dataset: Any) -> Any:
    """Return the dataset to read, which is made now if a function makes it."""
    if not hasattr(dataset, "element_spec") and callable(dataset):
        return dataset()
    capture.note(_AS_IT_IS)
    return dataset


def _train(
    capture: Capture,
    dataset: Any,
    step: Callable[[Any], object],
    epochs: int,
    steps_per_epoch: int | None,
) -> None:
    for _ in range(epochs):
        batches = iter(dataset)
        capture.declare_training("it was given as a training step", epochs)
        for number, batch in enumerate(batches, start=1):
            step(batch)
            if number == steps_per_epoch:
                break


def _take_for_ever(capture: Capture, dataset: Any) -> None:
    """Read the dataset again and again until enough was measured."""
    while True:
        batches = iter(dataset)
        capture.declare_training("stands for a consumer that takes no time", None)
        empty = True
        for _ in batches:
            empty = False
        if empty:
            raise PipediagError("the dataset has no elements, so there is nothing to measure.")
