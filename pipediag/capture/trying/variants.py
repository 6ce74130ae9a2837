"""Variants: the loop's pipeline, and the model that it trains, each with some changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pipediag.capture.loops.loop import Loop
from pipediag.capture.replay import NotReplayableError
from pipediag.capture.replay.changes import model_settings
from pipediag.capture.replay.elements import dataset_of, first_elements
from pipediag.capture.replay.graph import Graph
from pipediag.capture.replay.rebuilding import FilledCaches, rebuild, refuse_to_disturb
from pipediag.capture.replay.replacing import padding_cut
from pipediag.capture.replay.rewriting import Rewritten, verify_rewritten
from pipediag.capture.replay.verification import READING_LIMIT_S, verify
from pipediag.capture.runtime import Settings
from pipediag.capture.trying.model_variants import ModelVariants
from pipediag.session.edits import Change, CompileFunction, RewriteCall
from pipediag.vocabulary import BASE

_BATCHES_OF_A_CHECK = 2


@dataclass(frozen=True)
class Variant:
    """A variant that can hand out batches."""

    dataset: Any
    settings: Settings
    """How the model is compiled for it, where that is not as the user compiled it."""
    rows: int
    batches_per_step: int
    rewritten: Rewritten
    """The code that the script's functions run for it."""


class Variants:
    """Variants of one loop, by name."""

    def __init__(
        self, loop: Loop, model: ModelVariants, step_failed: Callable[[BaseException], None]
    ) -> None:
        self._loop = loop
        self._step_failed = step_failed
        self._dataset = getattr(loop.dataset, "_original_dataset", loop.dataset)
        self._model = model
        self._caches = FilledCaches()
        self._built: dict[str, Variant] = {}
        self._patched = ExitStack()
        """Lets the script's functions run their own code again."""

    def __getitem__(self, name: str) -> Variant:
        return self._built[name]

    @property
    def base(self) -> Variant | None:
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
        self._patched.close()
        rewritten = Rewritten(changes, files or {}, self._step_failed)
        verify_rewritten(self._dataset, changes, rewritten)
        changes = tuple(c for c in changes if not isinstance(c, RewriteCall | CompileFunction))
        settings: Settings = model_settings(changes)
        self._model.check(settings)
        same = None
        if check == "outputs":
            self._verify_outputs()
        elif check is not None:
            same = verify(self._dataset, changes, check)
        runtime = self._loop.runtime
        with rewritten.patched():
            # Endless, as blocks don't end where the elements do.
            dataset = rebuild(self._dataset, changes, endless=True, caches=self._caches)
            first = runtime.pull(runtime.unobserved(dataset))
        rows = runtime.rows(first) or self._loop.record.batch_size or 1
        base = self.base
        if base is not None and rows != base.rows and self._loop.record.kind != "keras":
            raise NotReplayableError(
                "The loop is the script's own code, which may rely on the size of its batches."
            )
        own = self._loop.record.batches_per_call
        batches = int(settings.get("steps_per_execution") or own)
        self._built[name] = Variant(dataset, settings, rows, batches, rewritten)
        return same

    def _verify_outputs(self) -> None:
        refuse_to_disturb(Graph(self._dataset))
        read = first_elements(self._dataset, _BATCHES_OF_A_CHECK, READING_LIMIT_S).elements
        fixed = dataset_of(read, self._dataset.element_spec)
        changed = first_elements(padding_cut([fixed]), len(read)).elements
        self._model.same_outputs(read, changed)

    def iterator(self, variant: Variant) -> Any:
        """Return a fresh iterator, which the hooks take for none of the script's; the script's
        functions run the variant's code from here on."""
        self._patched.close()
        self._patched.enter_context(variant.rewritten.patched())
        return self._loop.runtime.unobserved(variant.dataset)

    def clear(self) -> None:
        self._patched.close()
        self._built.clear()
        self._caches.clear()
