"""Arms: the loop's pipeline, and the model that it trains, each with some changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipediag.capture.guard import nothing
from pipediag.capture.loops.loop import Loop
from pipediag.capture.replay.changes import MOVED_LAYERS, model_settings, skipped_callbacks
from pipediag.capture.replay.rebuilding import FilledCaches, rebuild
from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.capture.replay.rewriting import Rewritten, verify_rewritten
from pipediag.capture.replay.verification import verify
from pipediag.capture.runtime import Runtime, Settings, Variants
from pipediag.session.edits import Change, CompileFunction, RewriteCall
from pipediag.vocabulary import BASE


class AsItIs:
    """The only variant of a model that can't be compiled otherwise."""

    def check(self, settings: Settings) -> None:
        if settings:
            raise NotReplayableError(
                "Only a model in a Keras `fit` on TensorFlow can be compiled otherwise."
            )

    def use(self, settings: Settings) -> None:
        """Go on as before."""

    def on_elements(self, settings: Settings) -> None:
        """Leave nothing to the pipeline."""

    def batches_per_step(self, settings: Settings, own: int) -> int:  # noqa: ARG002
        return own


@dataclass(frozen=True)
class Arm:
    """A variant that can hand out batches."""

    dataset: Any
    runtime: Runtime
    settings: Settings
    """How the model is compiled for it, where that is not as the user compiled it."""
    rows: int
    batches_per_step: int
    skipped: Sequence[Any] = ()
    """Callbacks of the script whose batch hooks are not called for its steps."""
    enter: Callable[[], None] = nothing
    """Lets the script's functions run the arm's code, or their own."""
    traces: Callable[[], int | None] = nothing
    """Counts the traces of a function that the arm has traced otherwise."""

    @property
    def moved(self) -> tuple[str, ...]:
        """Return the layers that its pipeline has in the model's place."""
        return tuple(self.settings.get(MOVED_LAYERS, ()))

    def iterator(self) -> Any:
        """Return a fresh iterator, which the hooks take for none of the script's."""
        self.enter()
        return self.runtime.unobserved(self.dataset)


class Arms:
    """Arms of one loop, by name."""

    def __init__(
        self, loop: Loop, model: Variants, step_failed: Callable[[BaseException], None]
    ) -> None:
        self._loop = loop
        self._step_failed = step_failed
        self._dataset = getattr(loop.dataset, "_original_dataset", loop.dataset)
        self._model = model
        self._caches = FilledCaches()
        self._built: dict[str, Arm] = {}
        self._rewritten: list[Rewritten] = []

    def __getitem__(self, name: str) -> Arm:
        return self._built[name]

    @property
    def base(self) -> Arm | None:
        """Return the arm without changes, once it was built."""
        return self._built.get(BASE)

    def build(
        self,
        name: str,
        changes: tuple[Change, ...],
        check: Any,
        files: Mapping[str, str] | None = None,
    ) -> int | None:
        """Make it ready to hand out batches, and compare its elements where `check` asks for that.

        Returns how many elements were the same in two passes, where that is checked. Raises
        NotReplayableError where it can't be made, or not without changing what the script does.
        """
        self._run(None)
        rewritten = Rewritten(changes, files or {}, self._step_failed)
        verify_rewritten(self._dataset, changes, rewritten)
        if rewritten:
            changes = tuple(
                one for one in changes if not isinstance(one, RewriteCall | CompileFunction)
            )
            self._rewritten.append(rewritten)
        settings: Settings = model_settings(changes)
        self._model.check(settings)
        skipped = self._skipped(changes)
        same = verify(self._dataset, changes, check) if check is not None else None
        self._run(rewritten)
        # Endless, as blocks don't end where the elements do.
        dataset = rebuild(
            self._dataset,
            changes,
            endless=True,
            caches=self._caches,
            layers=self._model.on_elements(settings),
        )
        runtime = self._loop.runtime
        first = runtime.pull(runtime.unobserved(dataset))
        rows = runtime.rows(first) or self._loop.record.batch_size or 1
        base = self.base
        if base is not None and rows != base.rows and self._loop.record.kind != "keras":
            raise NotReplayableError(
                "The loop is the script's own code, which may rely on the size of its batches."
            )
        own = self._loop.record.batches_per_call
        batches_per_step = self._model.batches_per_step(settings, own)
        enter = partial(self._run, rewritten)
        self._built[name] = Arm(
            dataset,
            runtime,
            settings,
            rows,
            batches_per_step,
            skipped,
            enter,
            rewritten.traces,
        )
        self._run(None)
        return same

    def _run(self, rewritten: Rewritten | None) -> None:
        """Let the script's functions run that code, and all others their own."""
        for other in self._rewritten:
            other.use(patched=False)
        if rewritten:
            rewritten.use(patched=True)

    def clear(self) -> None:
        """Drop them, and the caches that were filled for them."""
        self._run(None)
        self._built.clear()
        self._caches.clear()

    def _skipped(self, changes: tuple[Change, ...]) -> Sequence[Any]:
        named = skipped_callbacks(changes)
        if not named:
            return ()
        loop = self._loop
        if loop.trainer is None:
            raise NotReplayableError("Only the callbacks of a Keras `fit` can be left out.")
        callbacks = loop.callbacks() if loop.callbacks is not None else None
        if callbacks is None:
            raise NotReplayableError("The `fit` whose callbacks were recorded is over.")
        return loop.trainer.callbacks_named(callbacks, named)
