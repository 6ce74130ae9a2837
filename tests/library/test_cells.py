"""Places in a notebook are cells and lines, and the lines shown are the cell's."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipediag.capture.callsites import is_users
from pipediag.library.cells import (
    Cell,
    cells_of_notebook,
    read_cells,
    when_cell_ends,
    with_cells,
    write_cells,
)
from pipediag.session.model import Session
from tests.factories import make_session, make_verdict

FILE = "/tmp/ipykernel_12/3456.py"
OLD = "<ipython-input-7-0123456789ab>"
SOURCE = "# %%pipediag\ndataset = dataset.map(slow)\nmodel.fit(dataset)\n"
CELLS = {FILE: Cell("cell In[3]", SOURCE)}


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={FILE: 3}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    for name in (FILE, OLD, "/tmp/other.py"):
        entry = (len(SOURCE), None, SOURCE.splitlines(keepends=True), name)
        monkeypatch.setitem(linecache.cache, name, entry)


@pytest.mark.usefixtures("notebook")
def test_cells_are_known_by_what_ipython_calls_them(tmp_path: Path) -> None:
    expected = {**CELLS, OLD: Cell("cell In[7]", SOURCE)}
    assert cells_of_notebook() == expected
    write_cells(tmp_path)
    assert read_cells(tmp_path) == expected


def test_a_program_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    write_cells(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert read_cells(tmp_path) == {}


def test_what_waits_for_a_cells_end_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[Callable[..., None]] = []
    events = SimpleNamespace(
        register=lambda _, call: waiting.append(call),
        unregister=lambda _, call: waiting.remove(call),
    )
    called: list[str] = []
    shell = SimpleNamespace(events=events)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    when_cell_ends(lambda: called.append("once"))
    assert called == []
    waiting[0]("what came of the cell")
    assert (called, waiting) == (["once"], [])


def test_code_of_a_cell_is_the_users() -> None:
    assert is_users(FILE)
    assert is_users(OLD)
    assert not is_users("<string>")


def _session(file: str) -> Session:
    return make_session(
        verdict=make_verdict(
            summary=f"Input is the bottleneck: `map` at {file}:2.",
            reasons=["3456.py can't be read any more."],
            file=file,
            line=2,
        )
    )


def test_places_are_cells_and_the_lines_are_theirs() -> None:
    session = _session(FILE)
    named = with_cells(session, CELLS, source=True)
    assert named.verdict.file == "cell In[3]"
    assert named.verdict.summary == "Input is the bottleneck: `map` at cell In[3]:2."
    assert named.verdict.reasons == ["It is a cell of a notebook: change it there."]
    assert named.verdict.source is not None
    assert named.verdict.source.lines[1] == "dataset = dataset.map(slow)"
    assert FILE not in named.model_dump_json()


def test_without_source_there_are_no_lines() -> None:
    session = _session(FILE)
    assert with_cells(session, CELLS, source=False).verdict.source is None


def test_what_is_in_no_cell_stays_as_it_is() -> None:
    session = _session("/home/me/train.py")
    assert with_cells(session, {}, source=True) is session
    assert with_cells(session, CELLS, source=True).verdict.file == "/home/me/train.py"
