"""Hooks into the frameworks as the script imports them.

Nothing is imported here that the script has not imported: each hook is installed when the module it
belongs to arrives.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.abc import MetaPathFinder
from typing import Any

from pipediag.capture.frameworks.framework import Framework, Hook
from pipediag.capture.frameworks.replaced import Replaced
from pipediag.capture.guard import Guard
from pipediag.capture.watching.watchers import Watchers


def install_hooks(frameworks: Iterable[Framework], watchers: Watchers) -> None:
    """Wait for each framework; a hook that does not fit it is left out, and noted."""
    for package, hooks in _by_arrival(frameworks, watchers).items():
        _wait_for(package, hooks, watchers.guard)


def hook_now(frameworks: Iterable[Framework], watchers: Watchers) -> Replaced:
    """Hook into what the program has imported already, and into what it imports from now on;
    returns what puts it back as it was."""
    replaced, guard = Replaced(), watchers.guard
    for package, hooks in _by_arrival(frameworks, watchers).items():
        noted = [(name, _noting(replaced, hook)) for name, hook in hooks]
        if package not in sys.modules:
            _wait_for(package, noted, guard)
            continue
        for name, hook in noted:
            if name in sys.modules:
                guard.entry(f"hooking into {name}", hook)(sys.modules[name])
        _when_imported([one for one in noted if one[0] not in sys.modules], guard)
    return replaced


def _by_arrival(
    frameworks: Iterable[Framework], watchers: Watchers
) -> dict[str, list[tuple[str, Hook]]]:
    """The hooks of all frameworks, by the package that comes before what they are hooked into."""
    found: dict[str, list[tuple[str, Hook]]] = {}
    for framework in frameworks:
        for name, hook in _hooks_of(framework, watchers):
            found.setdefault(framework.arrives_with, []).append((name, hook))
    return found


def _noting(replaced: Replaced, hook: Hook) -> Hook:
    def hook_and_note(module: Any) -> None:
        with replaced.noting(module):
            hook(module)

    return hook_and_note


def _hooks_of(framework: Framework, watchers: Watchers) -> Iterator[tuple[str, Hook]]:
    yield from framework.hooks(watchers)
    for module, paths in framework.looks_at_training.items():
        yield module, functools.partial(watchers.state.show_before, paths)


def _wait_for(package: str, hooks: list[tuple[str, Hook]], guard: Guard) -> None:
    def arrives() -> None:
        _when_imported(hooks, guard)

    arrival = _Arrival(package, guard.entry(f"waiting for {package}", arrives))
    sys.meta_path.insert(0, arrival)
    guard.when("forked", arrival.leave)
    guard.when("dismissed", arrival.leave)


def _when_imported(hooks: Iterable[tuple[str, Hook]], guard: Guard) -> None:
    # Not sooner: TensorFlow needs wrapt itself, a script without TensorFlow does not.
    import wrapt

    for module, hook in hooks:
        wrapt.register_post_import_hook(guard.entry(f"hooking into {module}", hook), module)


class _Arrival(MetaPathFinder):
    """Finds nothing, but tells when a package is about to be imported for the first time."""

    def __init__(self, package: str, arrives: Callable[[], None]) -> None:
        self._package = package
        self._arrives = arrives

    def find_spec(self, fullname: str, *_: object) -> None:
        """Called for every import until the package comes."""
        if fullname == self._package and self in sys.meta_path:
            self.leave()
            self._arrives()

    def leave(self) -> None:
        """Wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
