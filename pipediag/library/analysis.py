"""Analyses of what a program has at hand: a dataset with what consumes it, or by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipediag.capture import Capture
from pipediag.capture.replay import NotReplayableError
from pipediag.errors import PipediagError
from pipediag.library.keras_fit import KerasFit, is_keras_model
from pipediag.library.measuring import MakeSettings, measure
from pipediag.library.result import Result
from pipediag.session.files import SESSION_FILE
from pipediag.session.settings import RunSettings
from pipediag.session.store import load_session
from pipediag.vocabulary import Call

_AS_IT_IS = (
    "The dataset was read as it is, as it can't be made again: {reason} Where it shuffles each "
    "pass anew, the next one has another order than it would have had."
)


def analyze(
    dataset: Any,
    model: Any,
    *,
    epochs: int = 1,
    steps_per_epoch: int | None = None,
    budget: float = 60.0,
    steps: int | None = None,
    warmup: int | None = None,
    profile_steps: int | None = None,
    source: bool = True,
    **fit: Any,
) -> Result:
    """Train for as long as it takes to say where the time goes, and put everything back.

    What `pipediag analyze` does with a script is done here with a dataset and what trains on it:
    warm-up, a window without a profiler, a profile, trials of what is recommended, each on the
    running loop. Training ends as soon as that is done, or after `epochs`. Then all variables and
    the states of Python's, NumPy's and TensorFlow's generators are what they were before.

    Args:
        dataset: a `tf.data.Dataset`, or a function without arguments that makes one. Of a dataset
            that was made before, the lines of its calls are not known; it is made again by the
            calls that its objects tell of, and not read itself.
        model: a Keras model on TensorFlow, compiled, whose `fit` is called; or a function that
            makes one training step with one batch. A model that is not built yet is built by the
            shapes of the dataset's elements, and stays so.
        epochs: as many as your training would have: a run is projected to their end.
        steps_per_epoch: batches of an epoch, where that is less than the dataset has.
        budget: seconds for a closer look and for trials; 0 tries nothing.
        steps: measured steps; None lets it depend on how long they take.
        warmup: steps that are left out; None finds out.
        profile_steps: steps under TensorFlow's profiler; 0 takes no profile.
        source: whether the result may hold your code; without it there is no patch.
        **fit: more for Keras's `fit`, such as `class_weight` or `callbacks`.

    Raises:
        PipediagError: nothing can be measured, for the reason that it names.
        TypeError: `model` is neither, or arguments for `fit` came with a function.
    """
    if epochs < 1:
        raise ValueError(f"epochs is {epochs}; there must be one at least.")
    keras_model = is_keras_model(model)
    if not keras_model and not callable(model):
        raise TypeError(f"model is a {type(model).__name__}; give a Keras model or a function.")
    if fit and not keras_model:
        raise TypeError(f"{', '.join(fit)}: such arguments are for a Keras model's `fit`.")

    def work(capture: Capture) -> None:
        data = _recorded(capture, dataset)
        if keras_model:
            arguments = {"epochs": epochs, "steps_per_epoch": steps_per_epoch, **fit}
            KerasFit(model, capture.note).run(data, arguments)
        else:
            _train(capture, data, model, epochs, steps_per_epoch)

    settings = _settings("analyze", steps, warmup, profile_steps)
    return _result(work, settings, budget, source)


def analyze_input(
    dataset: Any,
    *,
    budget: float = 60.0,
    steps: int | None = None,
    warmup: int | None = None,
    source: bool = True,
) -> Result:
    """Take batches of a pipeline as fast as they come, and say what limits it.

    Nothing is trained, so nothing is said about training: what a faster pipeline would buy there
    depends on how long a step takes. Trials compare the pipeline alone.

    Args:
        dataset: as for `analyze`. One that ends is read again from its beginning.
        budget: seconds for trials; 0 tries nothing.
        steps: measured batches; None lets it depend on how long they take.
        warmup: batches that are left out; None finds out.
        source: whether the result may hold your code; without it there is no patch.

    Raises:
        PipediagError: nothing can be measured, for the reason that it names.
    """

    def work(capture: Capture) -> None:
        _take_for_ever(capture, _recorded(capture, dataset))

    return _result(work, _settings("analyze_input", steps, warmup), budget, source)


def _settings(
    call: Call, steps: int | None, warmup: int | None, profile_steps: int | None = None
) -> MakeSettings:
    def settings(path: str, capture_directory: str) -> RunSettings:
        return RunSettings(
            script=path,
            args=(),
            module=False,
            capture_directory=capture_directory,
            steps=steps,
            warmup=warmup,
            profile_steps=profile_steps,
            look_ahead_s=0.0,
            call=call,
        )

    return settings


def _result(
    work: Callable[[Capture], None], settings: MakeSettings, budget: float, source: bool
) -> Result:
    if budget < 0:
        raise ValueError(f"budget is {budget}; it is a time in seconds, or 0.")
    directory = measure(work, settings, budget_s=budget, source=source)
    session = load_session(Path(directory.name) / SESSION_FILE)
    return Result(session, None, measured_in=directory)


def _recorded(capture: Capture, dataset: Any) -> Any:
    """The dataset to read: made now, or made again, by calls that are recorded."""
    if not hasattr(dataset, "element_spec") and callable(dataset):
        return dataset()
    try:
        return capture.recorded(dataset)
    except NotReplayableError as refusal:
        capture.note(_AS_IT_IS.format(reason=refusal))
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
        capture.declare_training("it was given as a training step")
        for number, batch in enumerate(batches, start=1):
            step(batch)
            if number == steps_per_epoch:
                break


def _take_for_ever(capture: Capture, dataset: Any) -> None:
    """Until enough was measured."""
    while True:
        batches = iter(dataset)
        capture.declare_training("stands for a consumer that takes no time")
        empty = True
        for _ in batches:
            empty = False
        if empty:
            raise PipediagError("the dataset has no element, so there is nothing to measure.")
