"""Hooks into the frameworks as the script imports them.

Nothing is imported here that the script has not imported: each hook is installed when the module it
belongs to arrives.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.abc import MetaPathFinder

from pipediag.capture.frameworks.framework import Framework, Hook
from pipediag.capture.frameworks.replaced import Replaced
from pipediag.capture.guard import Guard
from pipediag.capture.watching.watchers import Watchers


def install_hooks(frameworks: Iterable[Framework], watchers: Watchers) -> None:
    """Wait for each framework; a hook that does not fit it is left out, and noted."""
    by_arrival: dict[str, list[tuple[str, Hook]]] = {}
    for framework in frameworks:
        hooks = by_arrival.setdefault(framework.arrives_with, [])
        hooks.extend(_hooks_of(framework, watchers))
    for package, hooks in by_arrival.items():
        if hooks:
            _wait_for(package, hooks, watchers.guard)


def hook_now(frameworks: Iterable[Framework], watchers: Watchers) -> Replaced:
    """Hook into what the program has imported already; returns what puts it back as it was."""
    replaced = Replaced()
    for framework in frameworks:
        for name, hook in _hooks_of(framework, watchers):
            module = sys.modules.get(name)
            if module is not None:
                with replaced.noting(module):
                    watchers.guard.entry(f"hooking into {name}", hook)(module)
    return replaced


def _hooks_of(framework: Framework, watchers: Watchers) -> Iterator[tuple[str, Hook]]:
    yield from framework.hooks(watchers)
    for module, paths in framework.looks_at_training.items():
        yield module, functools.partial(watchers.state.show_before, paths)


def _wait_for(package: str, hooks: list[tuple[str, Hook]], guard: Guard) -> None:
    def arrives() -> None:
        # Not sooner: TensorFlow needs wrapt itself, a script without TensorFlow does not.
        import wrapt

        for module, hook in hooks:
            wrapt.register_post_import_hook(guard.entry(f"hooking into {module}", hook), module)

    arrival = _Arrival(package, guard.entry(f"waiting for {package}", arrives))
    sys.meta_path.insert(0, arrival)
    guard.in_forked_child(arrival.leave)


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
