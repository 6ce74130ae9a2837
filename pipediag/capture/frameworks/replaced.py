"""What hooks have replaced in modules and classes, to be put back in a program that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_ABSENT = object()


class Replaced:
    """Finds out by comparing: each hook says by itself where it belongs, and to nobody else."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, what was there, and what took its place; in the order of the hooks."""

    @contextmanager
    def noting(self, module: ModuleType) -> Iterator[None]:
        """Compare what is in the module, and in classes that it knows, before and after this."""
        classes = [value for value in vars(module).values() if isinstance(value, type)]
        before = {id(owner): (owner, dict(vars(owner))) for owner in (module, *classes)}
        try:
            yield
        finally:
            for owner, values in before.values():
                for name, now in dict(vars(owner)).items():
                    was = values.get(name, _ABSENT)
                    if now is not was:
                        self._before.append((owner, name, was, now))

    def put_back(self) -> None:
        """As it was, the last first; what somebody else has put there since then stays."""
        while self._before:
            owner, name, was, ours = self._before.pop()
            if vars(owner).get(name) is not ours:
                continue
            if was is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, was)
