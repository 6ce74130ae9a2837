"""Hooks into the frameworks, each when the script has imported the module that it belongs to."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

from pipediag.capture.frameworks.keras.framework import Keras
from pipediag.capture.frameworks.tensorflow.framework import TensorFlow
from pipediag.capture.watching.step_clock import Hook, Watchers

FRAMEWORKS: tuple[type[TensorFlow | Keras], ...] = (TensorFlow, Keras)
_PACKAGE = "tensorflow"
"""Package that is imported before all modules that are hooked into."""
_ABSENT = object()


def install_hooks(watchers: Watchers, replaced: Replaced | None = None) -> None:
    """Hook into what is imported already, and into the rest as it arrives.

    A hook that does not fit its module is left out, and noted.
    """
    guard = watchers.guard
    hooks: list[tuple[str, Hook]] = []
    for framework in FRAMEWORKS:
        hooks += framework(watchers).by_module()
        for module, paths in framework.looks_at_training.items():
            hooks.append((module, partial(watchers.state.show_before, paths)))

    def arrives() -> None:
        # Not sooner: TensorFlow needs wrapt itself, a script without TensorFlow does not.
        import wrapt

        for module, hook in hooks:
            noted = hook if replaced is None else replaced.noting(hook)
            wrapt.register_post_import_hook(guard.entry(f"hooking into {module}", noted), module)

    if _PACKAGE in sys.modules:
        arrives()
        return
    arrival = _Arrival(_PACKAGE, guard.entry(f"waiting for {_PACKAGE}", arrives))
    sys.meta_path.insert(0, arrival)
    guard.when("forked", arrival.leave)
    guard.when("dismissed", arrival.leave)


class _Arrival(MetaPathFinder):
    """Finds nothing, but calls `arrives` when a package is about to be imported."""

    def __init__(self, package: str, arrives: Callable[[], None]) -> None:
        self._package = package
        self._arrives = arrives

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self._package and self in sys.meta_path:
            self.leave()
            self._arrives()

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class Replaced:
    """Attributes that hooks have replaced, found by comparing, to be put back later on."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, what was there, and what took its place; in the order of the hooks."""

    def noting(self, hook: Hook) -> Hook:
        """Return the hook with a comparison of the module, and of classes that it knows."""

        def hook_and_note(module: ModuleType) -> None:
            classes = [value for value in vars(module).values() if isinstance(value, type)]
            before = {id(owner): (owner, dict(vars(owner))) for owner in (module, *classes)}
            try:
                hook(module)
            finally:
                for owner, values in before.values():
                    for name, now in dict(vars(owner)).items():
                        if now is not (was := values.get(name, _ABSENT)):
                            self._before.append((owner, name, was, now))

        return hook_and_note

    def put_back(self) -> None:
        """Put it back, the last first; what others have put there since then stays."""
        while self._before:
            owner, name, was, ours = self._before.pop()
            if vars(owner).get(name) is ours:
                if was is _ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, was)
