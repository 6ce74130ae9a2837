"""Running a script, a module, a directory or a zip file exactly as `python` would."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Mapping, Set
from importlib.machinery import SourceFileLoader
from pathlib import Path
from pkgutil import get_importer
from types import CodeType, ModuleType

from pipediag.session.messages import RunSettings


def prepare(settings: RunSettings, own_arguments: int) -> Callable[[], None]:
    """Make this interpreter look as if it had been started for the script; return what runs it.

    `own_arguments` is how many trailing entries of `sys.orig_argv` started us instead.
    """
    replaced = _Replaced(settings.replaced_files or {})
    target = ["-m", settings.script] if settings.module else [settings.script]
    sys.orig_argv[len(sys.orig_argv) - own_arguments :] = [*target, *settings.args]
    main = _install_main_module()
    if settings.module:
        sys.argv[:] = ["-m", *settings.args]
        _prepend_path(str(Path.cwd()), settings.safe_path)
        return lambda: _run_module_as_main(settings.script, alter_argv=True)

    sys.argv[:] = [settings.script, *settings.args]
    path = absolute_as_python_does(settings.script)
    if get_importer(path) is not None:
        _prepend_path(path, safe_path=False)
        return lambda: _run_module_as_main("__main__", alter_argv=False)

    directory = os.path.dirname(os.path.realpath(settings.script))  # noqa: PTH120
    _prepend_path(directory, settings.safe_path)
    return lambda: _run_file(path, main, replaced)


class _Replaced:
    """Source files in place of which others are run.

    Modules keep their names and places. Code objects have the path of the file that was run, since
    AutoGraph reads a function's source there.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {os.path.realpath(path): other for path, other in files.items()}
        self._names = {os.path.basename(path) for path in self._files}  # noqa: PTH119
        if files:
            self._replace_modules()

    def file(self, path: str) -> str:
        """The path of the file to run."""
        # `realpath` would look at each directory on the way to each module that is imported.
        if os.path.basename(path) not in self._names and not os.path.islink(path):  # noqa: PTH114, PTH119
            return path
        return self._files.get(os.path.realpath(path), path)

    def _replace_modules(self) -> None:
        genuine = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
            path = loader.get_filename(fullname)
            other = self.file(path)
            if other == path:
                return genuine(loader, fullname)
            return loader.source_to_code(Path(other).read_bytes(), other)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def remove_shadowed_modules(at_start: Set[str]) -> None:
    """Remove from `sys.modules` what has the name of another file on the script's path.

    Call it once that path is in place. Modules that were there `at_start` stay, as the interpreter
    itself has imported them.
    """
    ours = set(sys.modules) - at_start
    shadowed = {name for name in {name.partition(".")[0] for name in ours} if _is_shadowed(name)}
    for name in ours:
        if name.partition(".")[0] in shadowed:
            del sys.modules[name]


def _is_shadowed(name: str) -> bool:
    specs = (finder.find_spec(name, None) for finder in sys.meta_path)
    found = next((spec for spec in specs if spec is not None), None)
    own = getattr(sys.modules.get(name), "__spec__", None)
    return found is not None and own is not None and found.origin != own.origin


def absolute_as_python_does(path: str) -> str:
    """The `__file__` of a script: joined to the working directory, `..` and links left alone."""
    if os.path.isabs(path):  # noqa: PTH117 - pathlib would normalise
        return path
    return os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118


def _prepend_path(entry: str, safe_path: bool) -> None:
    if not safe_path:
        sys.path.insert(0, entry)


def _install_main_module() -> ModuleType:
    """A fresh `__main__`, left in place for good: atexit handlers and pickle look it up."""
    main = ModuleType("__main__")
    if hasattr(sys.modules["__main__"], "__annotations__"):
        main.__annotations__ = {}
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    return main


def _run_module_as_main(name: str, alter_argv: bool) -> None:
    # Where the interpreter imports it, too: what it needs is looked for on the script's path.
    import runpy

    # The very function that the interpreter calls for `-m`, so tracebacks show the same frames.
    runpy._run_module_as_main(name, alter_argv)  # type: ignore[attr-defined]


def _run_file(path: str, main: ModuleType, replaced: _Replaced) -> None:
    namespace = main.__dict__
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__file__ = path
    namespace["__cached__"] = None
    file = replaced.file(path)
    code = compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    exec(code, namespace)
    # The interpreter takes both away when a script has run, before atexit handlers.
    namespace.pop("__file__", None)
    namespace.pop("__cached__", None)
