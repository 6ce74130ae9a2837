"""Analyses of what a program has at hand: a dataset with what consumes it, or by itself."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipediag.capture import Capture, StopScript
from pipediag.capture.callsites import KERAS, call_site, package_of_module
from pipediag.capture.measuring.kept_state import (
    NotRestoredError,
    TrainingState,
    lacks_memory,
)
from pipediag.capture.replay import NotReplayableError
from pipediag.capture.replay.refusal import first_line
from pipediag.errors import PipediagError
from pipediag.library.beside import Beside
from pipediag.library.cells import in_notebook
from pipediag.library.one_at_a_time import give_turn_back, take_turn
from pipediag.library.own_directory import OwnDirectory
from pipediag.library.result import Result
from pipediag.session.files import SESSION_FILE
from pipediag.session.messages import Ended, Started
from pipediag.session.settings import RunSettings
from pipediag.session.store import load_session
from pipediag.vocabulary import Call, OwnEnding

_NO_FILE = "<python>"
_NEW_VARIABLES = (
    "{count} variables were made by the first step, and keep what the steps of this analysis have "
    "trained. Build the model before it is analysed."
)

Work = Callable[[Capture], None]
"""Runs what is to be measured, under the capture that it is given."""
MakeSettings = Callable[[str, str], RunSettings]
"""Those of a run, of the file that called and the directory to capture to."""


def measure(work: Work, make_settings: MakeSettings, *, budget_s: float) -> OwnDirectory:
    """Run `work` as the script of an analysis; return the directory that holds its session.

    Afterwards variables and random numbers are what they were, and no hook is left. What `work`
    raises is raised.

    Raises:
        PipediagError: nothing can be measured here, or no session could be made of it.
    """
    _refuse_where_nothing_can_be_measured()
    take_turn()
    try:
        directory = OwnDirectory()
        try:
            capture_directory = tempfile.mkdtemp(prefix=".capture-", dir=directory.name)
            site = call_site()
            settings = make_settings(site.file if site else _NO_FILE, capture_directory)
            place, aloud = Path(directory.name), in_notebook()
            beside = Beside(settings, place, budget_s=budget_s, aloud=aloud)
            try:
                _Measurement(beside, settings.input_only).of(work)
                beside.finish()
            except BaseException:
                beside.abandon()
                raise
        except BaseException:
            directory.cleanup()
            raise
    finally:
        give_turn_back()
    return directory


def _refuse_where_nothing_can_be_measured() -> None:
    if "tensorflow" not in sys.modules:
        raise PipediagError("TensorFlow is not imported, so there is nothing to measure.")
    lack = lacks_memory()
    if lack is not None:
        raise PipediagError(f"nothing was measured: {lack}.")


class _Measurement:
    """Of one piece of work."""

    def __init__(self, beside: Beside, input_only: bool) -> None:
        self._beside = beside
        self._input_only = input_only
        self._state = TrainingState()
        self._capture = Capture(beside.settings, beside.teller, program_goes_on=True)

    def of(self, work: Work) -> None:
        """Do it; what it raises comes through, and there is no session then."""
        began_ns = time.monotonic_ns()
        try:
            self._capture.install_in(self._state.keep_new)
            self._beside.teller.tell(Started())
            self._capture.script_begins(began_ns)
            try:
                work(self._capture)
            except StopScript:
                # Without a consumer nothing is held; pipelines are tried when the loop is over.
                self._ended("finished" if self._input_only else "stopped")
            else:
                self._ended("finished")
        finally:
            self._capture.leave_alone()
            self._restore()

    def _restore(self) -> None:
        try:
            self._state.restore()
        except NotRestoredError as error:
            raise PipediagError(
                f"the model is not what it was before the analysis: {error}. Load its weights "
                "again, and analyse it with `budget=0`, which tries nothing."
            ) from error

    def _ended(self, outcome: OwnEnding) -> None:
        unknown = self._state.count_unknown()
        if unknown:
            self._capture.note(_NEW_VARIABLES.format(count=unknown))
        status = 0 if outcome == "finished" else None
        self._capture.script_ended(outcome, status, None)
        self._beside.teller.tell(Ended(outcome, status))


_CHANGED_BY_FIT = ("train_function", "history", "stop_training")
_ABSENT = object()
_BUILT = (
    "The model was not built: it was, by the shapes of the dataset's elements, and stays so with "
    "the weights that it was given by that."
)


def is_keras_model(model: Any) -> bool:
    """Whether it is a model of Keras 3 or 2, by the class that it inherits from."""
    return any(
        kind.__name__ == "Model" and package_of_module(kind.__module__) in KERAS
        for kind in type(model).__mro__
    )


class KerasFit:
    """Calls `fit` once; what that sets on the model is put back, however it ends.

    Raises:
        PipediagError: the model is not compiled, or trains by something other than TensorFlow.
    """

    def __init__(self, model: Any, note: Callable[[str], None]) -> None:
        self._model = model
        self._note = note
        _refuse_other_backends(model)
        if getattr(model, "optimizer", None) is None:
            raise PipediagError(
                "the model is not compiled, so it can't train. Nothing was measured. Call "
                "`model.compile(...)` first."
            )

    def run(self, dataset: Any, arguments: Mapping[str, Any]) -> None:
        """Train silently, unless `verbose` is among the arguments.

        Raises:
            PipediagError: the model is not built, and can't be by what is known of its inputs.
        """
        model = self._model
        if not model.built:
            # Else Keras takes a batch to build it before any step: nobody sees its first weights.
            _build(model, dataset.element_spec)
            self._note(_BUILT)
        own = {name: vars(model).get(name, _ABSENT) for name in _CHANGED_BY_FIT}
        if not getattr(model.optimizer, "built", True):
            # Else its first step makes its variables, and nobody knows what they were.
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
    """Call the model with inputs as `fit` would take them of these elements, but without values."""
    # A list is one input of many parts; a tuple is inputs, targets and weights.
    inputs = elements[0] if isinstance(elements, tuple) else elements
    # Neither is imported here, but by the program that made the model.
    keras, tensorflow = sys.modules[_package(model)], sys.modules["tensorflow"]
    try:
        model(
            tensorflow.nest.map_structure(
                lambda spec: keras.Input(batch_shape=tuple(spec.shape), dtype=spec.dtype.name),
                inputs,
            )
        )
    except Exception as error:
        raise PipediagError(
            "the model is not built, and could not be by the shapes of the dataset's elements "
            f"({first_line(error)}), so its first weights could not be put "
            "back. Nothing was measured. Call `model.build(...)`, or the model with one batch, "
            "first."
        ) from error


def _package(model: Any) -> str:
    return next(
        name
        for kind in type(model).__mro__
        if kind.__name__ == "Model" and (name := package_of_module(kind.__module__)) in KERAS
    )


def _refuse_other_backends(model: Any) -> None:
    keras = sys.modules.get("keras")
    of_keras_3 = any(kind.__module__.startswith("keras.src") for kind in type(model).__mro__)
    config = getattr(keras, "config", None)
    if not of_keras_3 or config is None or not hasattr(config, "backend"):
        return
    backend = config.backend()
    if backend != "tensorflow":
        raise PipediagError(
            f"the model trains on {backend}, whose variables can't be put back afterwards. Nothing "
            "was measured. Run `pipediag analyze` on your script instead."
        )


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

    return _result(work, _settings("analyze", steps), budget)


def analyze_input(
    dataset: Any,
    *,
    budget: float = 60.0,
    steps: int | None = None,
) -> Result:
    """Take batches of a pipeline as fast as they come, and say what limits it.

    Nothing is trained, so nothing is said about training: what a faster pipeline would buy there
    depends on how long a step takes. Trials compare the pipeline alone.

    Args:
        dataset: as for `analyze`. One that ends is read again from its beginning.
        budget: seconds for trials; 0 tries nothing.
        steps: measured batches; None lets it depend on how long they take.

    Raises:
        PipediagError: nothing can be measured, for the reason that it names.
    """

    def work(capture: Capture) -> None:
        _take_for_ever(capture, _recorded(capture, dataset))

    return _result(work, _settings("analyze_input", steps), budget)


def _settings(call: Call, steps: int | None) -> MakeSettings:
    def settings(path: str, capture_directory: str) -> RunSettings:
        return RunSettings(
            script=path,
            args=(),
            module=False,
            capture_directory=capture_directory,
            steps=steps,
            look_ahead_s=0.0,
            call=call,
        )

    return settings


def _result(work: Callable[[Capture], None], settings: MakeSettings, budget: float) -> Result:
    if budget < 0:
        raise ValueError(f"budget is {budget}; it is a time in seconds, or 0.")
    directory = measure(work, settings, budget_s=budget)
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
