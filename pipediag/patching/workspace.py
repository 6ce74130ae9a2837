"""The source files of a session's calls, while changes are made to them."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import libcst as cst

from pipediag.facts.pipeline import by_hand, every, upstream_of
from pipediag.patching.sites import (
    Callers,
    Repeats,
    Suits,
    anchored,
    called_beside,
)
from pipediag.patching.snippets import find
from pipediag.patching.source import (
    Change,
    MadeInALoopError,
    NotPatchableError,
    Source,
    only,
)
from pipediag.session.ledger import BETWEEN_ROUNDS, FURTHER_ROUNDS
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import KerasUse

_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Directories of installed packages."""

GONE = "{name} can no longer be read."


def current_file(path: str) -> bytes:
    """Return the bytes of a source file that a patch depends on and does not change."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotPatchableError(GONE.format(name=Path(path).name)) from error


class Workspace:
    """Files as they were measured, and as the changes so far have made them."""

    def __init__(self, session: Session, read: Callable[[str], bytes]) -> None:
        self.session = session
        self._read = read
        self._sources: dict[str, Source] = {}
        self._reasons: dict[str, str] = {}
        self._beside: dict[str, list[Source]] = {}
        self.makers: Callers = {}
        """Functions that make more pipelines, which get the changes, too, and who calls them."""
        self.hoists: dict[tuple[str, int], None] = {}
        """Files and lines that create such pipelines in a loop, and may do so before it."""
        self.anew: set[tuple[str, int]] = set()
        """Files and lines of loops that make them anew for each `fit`."""
        self.cached: set[str] = set()
        """Operations behind which a cache was written."""
        self.moved: set[str] = set()
        """Operations that a change has moved."""
        self.notes: list[str] = []
        """Sentences on how the files differ from what was measured."""

    def source(self, path: str | None) -> Source:
        if path is None:
            raise NotPatchableError("The line that makes it was not recorded.")
        if path not in self._sources:
            ops = [op for op in every(self.session) if op.file == path]
            self._sources[path], reasons = anchored(self._own(path), ops)
            self._reasons.update(reasons)
        return self._sources[path]

    def operation(self, op_id: str) -> Operation:
        op = find(self.session, op_id)
        if op is None:
            raise NotPatchableError("The operation was not recorded.")
        if (how := by_hand(op)) is not None:
            raise NotPatchableError(how)
        if op.made_by_framework or op.inserted_by_tensorflow:
            raise NotPatchableError(f"The framework adds the `{op.kind}`, not your code.")
        return op

    def call(self, op_id: str) -> tuple[Source, cst.Call]:
        op = self.operation(op_id)
        source = self.source(op.file)
        if op_id in self._reasons:
            raise NotPatchableError(self._reasons[op_id])
        return source, source.call(op_id)

    def only_call(
        self, op_id: str, *, suits: Suits = "one", until: str | None = None
    ) -> tuple[Source, cst.Call]:
        """Return the call of an operation if the change is right for all that it has made.

        `until` is the operation of the same file that is the last one to be changed.
        """
        source, call = self.call(op_id)
        alike, ops = set(self.of_the_same_call(op_id)), every(self.session)
        above = (up.id for op in ops if op.id in alike for up in upstream_of(ops, op))
        if suits != "any" and not alike.isdisjoint(above):
            raise NotPatchableError("Several operations of a pipeline are made by this call.")
        end = source.span(call).end
        if until is not None:
            end = max(end, source.span(self.call(until)[1]).end)
        files = [source, *self.other_files(source.path)]
        repeats = Repeats(files, suits, **_kept(self.session, op_id))
        makers = repeats.refuse(source, call, end)
        self.makers |= makers
        self.anew.update(repeats.anew)
        self.hoists |= dict.fromkeys(repeats.hoists)
        if len(alike) > 1 and not makers and suits != "any":
            raise NotPatchableError(
                f"Line {self.operation(op_id).line} made several pipelines: only one was measured."
            )
        return source, call

    def call_of_helper(self, op_id: str, suits: Suits) -> tuple[Source, cst.Call]:
        """Return the call, beside the next operation, of the function that adds an operation."""
        readers = [op for op in every(self.session) if op_id in op.parent_ids]
        after = only(readers, "No operation, or more than one, reads its output.")
        source, call = self.call(op_id)
        where, next_call = self.call(after.id)
        found = called_beside(source, call, where, next_call)
        files = [where, *self.other_files(where.path)]
        Repeats(files, suits, **_kept(self.session, op_id)).refuse(where, found)
        return where, found

    def other_files(self, path: str) -> list[Source]:
        """Return the program's other files, as they are: only looked at."""
        real = os.path.realpath(path)
        return [source for at, source in sorted(self._program.items()) if at != real]

    def program_files(self) -> list[Source]:
        """Return the program's files, as the changes so far have made them."""
        return [self.source(source.path) for source in self._program.values()]

    @cached_property
    def _program(self) -> dict[str, Source]:
        """Files of the program, by their real paths: those that are known, and what they import."""
        session, keras = self.session, self.session.keras
        main, roots = session.script.main_file, self._roots
        named: list[Path | str | None] = [main, keras.compile_file if keras is not None else None]
        named += [*(loop.file for loop in session.loops), *(op.file for op in every(session))]
        waiting = [str(one) for one in named if one is not None]
        found: dict[str, Source | None] = {}
        for path in waiting:
            if (real := os.path.realpath(path)) not in found:
                found[real] = None
                # Not there, or not the program's own, or no Python.
                with suppress(NotPatchableError, SyntaxError, ValueError):
                    source = self._own(path)
                    waiting += _imported_by(path, source.data, roots)
                    found[real] = source
        return {real: source for real, source in found.items() if source is not None}

    @cached_property
    def _roots(self) -> tuple[Path, ...]:
        """Folders in which the script finds modules of its own."""
        main, folder = self.session.script.main_file, self.session.script.directory
        return (*([main.parent] if main else []), *([Path(folder)] if folder else []))

    def importing(self, source: Source, name: str) -> list[Source]:
        """Return files that import a file, as far as their text says, hold a name, and are no part
        of the program: other scripts, and tests, beside the file or below the script's folders."""
        real = os.path.realpath(source.path)
        if real not in self._beside:
            around = [Path(real).parent, *(one.resolve() for one in self._roots)]
            folders = dict.fromkeys(one for one in around if one in Path(real).parents)
            paths = dict.fromkeys(path for one in folders for path in _python_files(one))
            read = self._beside[real] = list[Source]()
            for path in paths:
                if path not in self._program and path != real:
                    with suppress(NotPatchableError):  # not there
                        read.append(Source.of(path, current_file(path)))
        module = "" if Path(real).stem == "__init__" else re.escape(Path(real).stem)
        imports = rf"\b(from|import)\b([^\n(]|(?<=\\)\n)*(\([^)]*)?\b{module}\b"
        both = [re.compile(one.encode()) for one in (rf"\b{name}\b", imports)]
        return [each for each in self._beside[real] if all(one.search(each.data) for one in both)]

    def _own(self, path: str) -> Source:
        """Return a file of the program's own, as it was measured."""
        if not path.endswith((".py", ".pyw")):
            raise NotPatchableError(f"{Path(path).name} is not a Python file.")
        if _INSTALLED & set(Path(path).parts):
            raise NotPatchableError(
                f"{Path(path).name} belongs to an installed package: an update undoes the change."
            )
        source, main = Source.of(path, self._read(path)), self.session.script.main_file
        imported = main is not None and os.path.realpath(path) != os.path.realpath(main)
        return replace(source, is_imported=imported)

    def keras(self) -> KerasUse:
        if self.session.keras is None:
            raise NotPatchableError("The loop does not belong to Keras.")
        return self.session.keras

    def compile_call(self) -> tuple[Source, cst.Call]:
        """Return the call that compiles the loop's model."""
        line, source = self.keras().compile_line, self.source(self.keras().compile_file)
        calls = [one for one in source.calls_of("compile") if source.line(one) == line]
        call = only(calls, f"Line {line} calls `compile` {len(calls)} times.")
        around = source.around(call, cst.FunctionDef)
        if around is not None and around.name.value == "compile":
            raise NotPatchableError("The model has its own `compile`, which may not accept this.")
        Repeats([source, *self.other_files(source.path)]).refuse(source, call)
        return source, call

    def of_the_same_call(self, op_id: str) -> list[str]:
        source = self.source(self.operation(op_id).file)
        at = source.anchors.get(op_id)
        others = (id for id, place in source.anchors.items() if place == at and id != op_id)
        return [op_id, *others]

    def change(self, source: Source, changes: list[Change]) -> None:
        self._sources[source.path] = source.changed(changes)

    def contents(self) -> dict[str, bytes]:
        return {path: source.content for path, source in self._sources.items()}


_MOST_ENTRIES = 1_000
"""Entries of folders that are looked at: data may lie there, too."""


def _python_files(folder: Path) -> list[str]:
    """Return the Python files in a folder and those below, the nearest first; but for those of
    hidden folders and of environments."""
    found, waiting, left = list[str](), deque([folder]), _MOST_ENTRIES
    while waiting and left > 0:
        with suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in islice(entries, left):
                left -= 1
                if entry.name.startswith(".") or entry.name in _INSTALLED:
                    continue
                if entry.name.endswith(".py"):
                    found.append(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
    return found


@lru_cache(maxsize=256)
def _imported_by(path: str, data: bytes, roots: Sequence[Path]) -> list[str]:
    """Return the files of modules that a file imports, next to it or below one of the roots."""
    here, found = Path(path).parent, list[Path]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the user wrote
        nodes = list(ast.walk(ast.parse(data)))
    for node in nodes:
        folders, names = [here, *roots], list[str]()
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                folders = [here, *here.parents][node.level - 1 : node.level]
            names = [node.module or "", *(f"{node.module or ''}.{one.name}" for one in node.names)]
        for folder in folders:
            for name in names:
                place = folder.joinpath(*name.strip(".").split("."))
                found += [place.with_name(f"{place.name}.py"), place / "__init__.py"]
    return [str(one) for one in dict.fromkeys(found) if one.is_file()]


def _kept(session: Session, op_id: str) -> dict[str, Any]:
    """Return fields of `Repeats`: the `fit` of several epochs that reads what the operation makes,
    and True if no loop calls it, so that the loop's pipeline serves all epochs of the run."""
    loop, run = session.diagnosed_loop(), session.run
    if loop is None or loop.keras is None or (loop.keras.epochs or 1) <= 1:
        return {}
    again = run is None or not {BETWEEN_ROUNDS, FURTHER_ROUNDS}.isdisjoint(run.not_seen)
    read = any(op.id == op_id for op in session.ops) and loop.file and loop.line
    return {
        "lasts": loop.planned_rounds == 1 and not again,
        "fit": (loop.file, loop.line) if read else None,
    }


def made_in_a_loop(session: Session, op_id: str) -> bool:
    """Return True if the script's source makes the operation anew in each pass of a loop, and can't
    make it before the loop."""
    workspace = Workspace(session, current_file)
    try:
        workspace.only_call(op_id, suits="cached")
    except NotPatchableError as error:
        return isinstance(error, MadeInALoopError)
    return bool(workspace.anew)
