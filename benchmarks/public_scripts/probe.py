"""Times a public script's own steps in its own process; knows nothing of pipediag.

    python probe.py MODE SECONDS RESULT SCRIPT

MODE is `written` (the script as it is), `repeated` (the loop gets its first batch again and again,
which a free input would be), `half` (the first half of that batch: what a step takes whatever its
batch is shows in the ratio), `alone` (the input without the step) or `whole` (the script to its
end, with the seconds that its parts take). RESULT is written as JSON. The variable PUBLIC_PROBE
holds how to find the loop, as JSON: `{}` for the first `fit`, `{"fit": 2}` for the third,
`{"loop_line": 171}` for a dataset that a loop in that line goes over, `{"function": "next_batch",
"after": 104}` for a function, defined above that line, that gives each step its batch.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LEAST_WARMUP = 5
ENDLESS = 1_000_000
INSERTED = "_probe_each"


class EnoughError(BaseException):
    """All that was asked for is measured; a script's own `except Exception` lets it pass."""


@dataclass
class Stamps:
    """Ends of steps, by epoch."""

    limit_s: float
    ends: list[tuple[int, float]] = field(default_factory=list)
    epoch: int = 0

    def stamp(self) -> None:
        now = time.perf_counter()
        self.ends.append((self.epoch, now))
        if now - self.ends[0][1] > self.limit_s:
            raise EnoughError

    def summary(self) -> dict[str, Any]:
        """Milliseconds a step, between steps of one epoch, after a warm-up of a fifth."""
        pairs = zip(self.ends, self.ends[1:], strict=False)
        every = [(b - a) * 1e3 for (e, a), (f, b) in pairs if e == f]
        kept = every[max(min(LEAST_WARMUP, len(every) // 2), len(every) // 5) :]
        if not kept:
            return {"steps": 0}
        return {
            "steps": len(kept),
            "mean_ms": statistics.fmean(kept),
            "median_ms": statistics.median(kept),
        }


@dataclass
class Probe:
    """The hooks of one mode."""

    mode: str
    script: Path
    target: dict[str, Any]
    stamps: Stamps
    began: float
    fits: int = 0
    spans: dict[str, float] = field(default_factory=dict)
    inside: list[str] = field(default_factory=list)

    # -- what Keras trains ------------------------------------------------------------------

    def hook_keras(self, tf: types.ModuleType) -> None:
        model, callback = tf.keras.Model, tf.keras.callbacks.Callback
        original = model.fit
        signature = inspect.signature(original)
        probe = self

        def fit(trained: Any, *args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(trained, *args, **kwargs).arguments
            bound.update(bound.pop("kwargs", {}))
            del bound["self"]
            number, probe.fits = probe.fits, probe.fits + 1
            if probe.mode == "whole":
                return probe.spanned(
                    "fit", lambda: original(trained, **probe.with_first_step(bound, callback))
                )
            if probe.target.keys() & {"loop_line", "function"} or number != probe.target.get(
                "fit", 0
            ):
                return original(trained, **bound)
            if probe.mode == "alone":
                probe.alone(tf, bound)
            if probe.mode != "written":
                probe.repeat(tf, bound)
            bound["callbacks"] = [*_listed(bound.get("callbacks")), probe.callback(callback)]
            result = original(trained, **bound)
            if probe.mode == "written":
                raise EnoughError
            return result

        model.fit = fit
        if self.mode == "whole":
            for name in ("evaluate", "predict"):
                self.hook_span(model, name)

    def hook_span(self, model: Any, name: str) -> None:
        original, probe = getattr(model, name), self
        setattr(model, name, lambda *a, **k: probe.spanned(name, lambda: original(*a, **k)))

    def spanned(self, name: str, call: Callable[[], Any]) -> Any:
        """Seconds of the call, less what is spanned within it."""
        began = time.perf_counter()
        self.spans.setdefault("before first fit", time.monotonic() - self.began)
        key = " in ".join([name, *self.inside[-1:]])
        within = sum(self.spans.values())
        self.inside.append(name)
        try:
            return call()
        finally:
            self.inside.pop()
            nested = sum(self.spans.values()) - within
            took = time.perf_counter() - began - nested
            self.spans[key] = self.spans.get(key, 0.0) + took

    def with_first_step(self, bound: dict[str, Any], callback: Any) -> dict[str, Any]:
        probe, began = self, time.perf_counter()

        class First(callback):  # type: ignore[misc]
            seen = False

            def on_train_batch_end(self, *_batch: Any, **_logs: Any) -> None:
                if not self.seen:
                    self.seen = True
                    took = time.perf_counter() - began
                    probe.spans["first steps"] = probe.spans.get("first steps", 0.0) + took

        return {**bound, "callbacks": [*_listed(bound.get("callbacks")), First()]}

    def callback(self, callback: Any) -> Any:
        stamps = self.stamps

        class Stamping(callback):  # type: ignore[misc]
            def on_epoch_begin(self, epoch: int, *_logs: Any) -> None:
                stamps.epoch = epoch

            def on_train_batch_end(self, *_batch: Any, **_logs: Any) -> None:
                stamps.stamp()

        return Stamping()

    def repeat(self, tf: types.ModuleType, bound: dict[str, Any]) -> None:
        """In place of the input its first batch, or half of it, for as long as it is wanted."""
        batch = self.halved(tf, _first_batch(tf, bound))
        for name in ("y", "batch_size", "validation_data", "validation_split", "validation_steps"):
            bound.pop(name, None)
        dataset = tf.data.Dataset.from_tensors(batch).repeat()
        bound.update(x=dataset, steps_per_epoch=ENDLESS, epochs=1)

    def halved(self, tf: types.ModuleType, batch: Any) -> Any:
        if self.mode != "half":
            return batch
        return tf.nest.map_structure(lambda part: part[: max(1, len(part) // 2)], batch)

    def alone(self, tf: types.ModuleType, bound: dict[str, Any]) -> None:
        if not isinstance(bound["x"], tf.data.Dataset):
            raise EnoughError
        for epoch in range(ENDLESS):
            self.stamps.epoch = epoch
            for _ in bound["x"]:
                self.stamps.stamp()

    # -- what a loop of the script's own goes over -------------------------------------------

    def hook_iteration(self, tf: types.ModuleType) -> None:
        from tensorflow.python.data.ops import dataset_ops

        original, probe = dataset_ops.DatasetV2.__iter__, self

        def iterate(dataset: Any) -> Iterator[Any]:
            caller = sys._getframe(1)
            found = caller.f_lineno == probe.target["loop_line"]
            if not found or caller.f_code.co_filename != str(probe.script):
                return original(dataset)  # type: ignore[no-any-return]
            probe.stamps.epoch += 1
            return probe.each(tf, original, dataset)

        dataset_ops.DatasetV2.__iter__ = iterate

    def each(self, tf: types.ModuleType, original: Any, dataset: Any) -> Iterator[Any]:
        if self.mode == "whole":
            self.spans.setdefault("before first fit", time.monotonic() - self.began)
        if self.mode in ("written", "whole", "alone"):
            for batch in original(dataset):
                if self.mode == "alone":
                    self.drain(original, dataset)
                self.stamps.stamp()
                yield batch
            return
        first = self.halved(tf, next(original(dataset)))
        while True:
            self.stamps.stamp()
            yield first

    def drain(self, original: Any, dataset: Any) -> None:
        for epoch in range(ENDLESS):
            self.stamps.epoch = epoch
            for _ in original(dataset):
                self.stamps.stamp()

    # -- a function that gives each step its batch -------------------------------------------

    def hook_function(self, batches_of: Callable[..., Any]) -> Callable[..., Any]:
        kept: list[Any] = []

        def give(*args: Any, **kwargs: Any) -> Any:
            if self.mode == "alone":
                while True:
                    batches_of(*args, **kwargs)
                    self.stamps.stamp()
            if self.mode == "whole":
                self.spans.setdefault("before first fit", time.monotonic() - self.began)
            self.stamps.stamp()
            if self.mode in ("written", "whole"):
                return batches_of(*args, **kwargs)
            if not kept:
                kept.append(batches_of(*args, **kwargs))
            if self.mode == "half":
                return tuple(part[: len(part) // 2] for part in kept[0])
            return kept[0]

        return give


def _first_batch(tf: types.ModuleType, bound: dict[str, Any]) -> Any:
    if isinstance(bound["x"], tf.data.Dataset):
        return next(iter(bound["x"]))
    size = bound.get("batch_size") or 32
    arrays = (bound["x"], bound["y"]) if bound.get("y") is not None else (bound["x"],)
    return tf.nest.map_structure(lambda array: tf.constant(array[:size]), arrays)


def _listed(callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]


def run(probe: Probe) -> None:
    """The script as `__main__`, hooked."""
    import tensorflow as tf

    probe.hook_keras(tf)
    lines = probe.script.read_text(encoding="utf-8").split("\n")
    if "loop_line" in probe.target:
        probe.hook_iteration(tf)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=str(probe.script), __builtins__=__builtins__)
    if "function" in probe.target:
        name, after = probe.target["function"], probe.target["after"]
        lines.insert(after, f"{name} = {INSERTED}({name})")
        main.__dict__[INSERTED] = probe.hook_function
    sys.modules["__main__"] = main
    sys.argv = [str(probe.script)]
    sys.path[0] = str(probe.script.parent)
    exec(compile("\n".join(lines), str(probe.script), "exec"), main.__dict__)


def main() -> None:
    """Run the script and write what was measured."""
    mode, limit, result, script = sys.argv[1:5]
    began = time.monotonic() - (time.process_time())
    probe = Probe(
        mode,
        Path(script),
        json.loads(os.environ.get("PUBLIC_PROBE", "{}")),
        Stamps(float("inf") if mode == "whole" else float(limit)),
        began,
    )
    with contextlib.suppress(EnoughError):
        run(probe)
    found = {**probe.stamps.summary(), "spans": probe.spans, "total_s": time.monotonic() - began}
    Path(result).write_text(json.dumps(found), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
