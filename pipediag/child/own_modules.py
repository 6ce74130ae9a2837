"""Modules that pipediag has imported and the script has not: out of the script's sight.

A script may have modules of the same names, beside it or wherever it puts into `sys.path` later.
Its imports find what they would find without pipediag. Where that is the very file that we have
imported, the script is handed our module, so that none exists twice in one process.
"""

from __future__ import annotations

import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # What is imported before imports are noted cannot be told apart from what the script needs.
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

PACKAGE = __name__.partition(".")[0]


class OwnModules:
    """A finder of modules that hands out ours, each once, where the script would get the same.

    What is imported while it is entered is ours.
    """

    def __init__(self, at_start: Iterable[str]) -> None:
        # Started by `-m`, the interpreter itself has imported a part of pipediag.
        self._at_start = {name for name in at_start if not _is_of_package(name)}
        self._imports: dict[str, set[str]] = {}
        self._modules: dict[str, ModuleType] = {}
        self._hidden: set[str] = set()
        self._genuine_import = builtins.__import__

    def __enter__(self) -> None:
        """Note which module imports which: the one makes the others visible with it."""
        builtins.__import__ = self._import

    def __exit__(self, *exception: object) -> None:
        builtins.__import__ = self._genuine_import

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        module = self._genuine_import(name, globals, locals, fromlist, level)
        importer = globals.get("__name__") if globals else None
        if importer:
            self._note(importer, *_imported(module, name, fromlist or (), level))
        return module

    def _note(self, importer: str, *names: str) -> None:
        self._imports.setdefault(importer, set()).update(names)

    def hide(self) -> None:
        """Take out of `sys.modules` what was not there at the start.

        Pipediag itself stays, unless the script's path has another module of that name.
        """
        ours = {name: sys.modules[name] for name in set(sys.modules) - self._at_start}
        package = _would_find(PACKAGE, None, sys.meta_path)
        keeps_package = package is None or package.origin == _origin(ours[PACKAGE])
        for name, module in ours.items():
            if not (keeps_package and _is_of_package(name)):
                self._modules[name] = module
                del sys.modules[name]
            if _is_alias(name, module):
                self._note(name.rpartition(".")[0], name)
        self._hidden = set(self._modules)
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, *_: object
    ) -> ModuleSpec | None:
        """Ours, if the script would get the same, and the same of all that it imports."""
        if fullname not in self._hidden or fullname in sys.modules:
            return None
        spec = _would_find(fullname, path, self._others())
        needed = self._with_imports(fullname)
        if spec is None or not all(map(self._is_native, needed)):
            return None
        spec.loader = _HandsOver(self._modules[fullname], lambda: self._show(needed))  # type: ignore[assignment]
        return spec

    def _show(self, names: set[str]) -> None:
        self._hidden -= names
        for name in names:
            sys.modules.setdefault(name, self._modules[name])

    def _others(self) -> Sequence[Any]:
        """The finders that are asked after us."""
        finders = sys.meta_path
        return finders[finders.index(self) + 1 :] if self in finders else finders

    def _with_imports(self, name: str) -> set[str]:
        reached: set[str] = set()
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current in self._modules and current not in reached:
                reached.add(current)
                waiting += [current.rpartition(".")[0], *self._imports.get(current, ())]
        return reached

    def _is_native(self, name: str) -> bool:
        """Whether the script gets the file of our module under that name."""
        ours = self._modules[name]
        if name in sys.modules:
            return sys.modules[name] is ours
        if _is_alias(name, ours):
            return True
        package = name.rpartition(".")[0]
        parent = self._modules.get(package) or sys.modules.get(package)
        spec = _would_find(name, getattr(parent, "__path__", None), self._others())
        return spec is not None and spec.origin == _origin(ours)


class _HandsOver:
    """A loader of what is loaded."""

    def __init__(self, module: ModuleType, on_import: Callable[[], None]) -> None:
        self._module = module
        self._spec = module.__spec__
        self._on_import = on_import

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
        self._on_import()


def _imported(module: ModuleType, name: str, names: Sequence[str], level: int) -> Iterator[str]:
    """The full names of the modules that an import statement names."""
    if not names and not level:
        parts = name.split(".")
        yield from (".".join(parts[: end + 1]) for end in range(len(parts)))
        return
    yield module.__name__
    yield from (f"{module.__name__}.{inner}" for inner in names)


def _is_of_package(name: str) -> bool:
    return name.partition(".")[0] == PACKAGE


def _is_alias(name: str, module: ModuleType) -> bool:
    """Whether another module has put it there, as `collections` does with `collections.abc`."""
    spec = getattr(module, "__spec__", None)
    return spec is None or spec.name != name


def _origin(module: ModuleType) -> str | None:
    return module.__spec__.origin if module.__spec__ is not None else None


def _would_find(name: str, path: object, finders: Sequence[Any]) -> ModuleSpec | None:
    """What an import of that name would find."""
    for finder in finders:
        spec: ModuleSpec | None = finder.find_spec(name, path, None)
        if spec is not None:
            return spec
    return None
