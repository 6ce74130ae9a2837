"""The magic, the cells of a notebook, and the notebooks of the documentation."""

from __future__ import annotations

import json
import linecache
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pipediag
from pipediag.library import watch as watching
from pipediag.library.companion import with_cells
from pipediag.library.notebook import Cell, cells_of_notebook, read_cells, write_cells
from pipediag.session.messages import Ended
from pipediag.session.model import Session
from tests.capture.captured import CHECKOUT
from tests.factories import make_session, make_verdict


class Shell:
    """As much of IPython's as the magic asks for: it shows errors of a cell itself."""

    def __init__(self) -> None:
        self.magics_manager = SimpleNamespace(magics={"cell": {}})
        self.compile = SimpleNamespace(_filename_map={__file__: 3})
        self.execution_count = 4
        self.counted: list[int] = []
        self.ran: list[str] = []
        self.fails: BaseException | None = None

    def register_magic_function(self, magic: Any, magic_kind: str, magic_name: str) -> None:
        self.magics_manager.magics[magic_kind][magic_name] = magic

    def run_cell(self, cell: str) -> SimpleNamespace:
        self.ran.append(cell)
        self.counted.append(self.execution_count)
        return SimpleNamespace(error_before_exec=None, error_in_exec=self.fails)

    @property
    def magic(self) -> Any:
        return self.magics_manager.magics["cell"]["pipediag"]


class Measured:
    """Stands for a measurement."""

    asked: Any = None
    ended: Any = None

    def __init__(self, call: str, *_: object, out: Any, steps: Any, **__: object) -> None:
        Measured.asked = out, steps
        assert call == "cell"

    def leave(self, ended: Ended) -> None:
        Measured.ended = ended

    def finish(self) -> str:
        return "the result"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(watching, "Measurement", Measured)
    shell = Shell()
    pipediag.load_ipython_extension(shell)
    return shell


def test_the_cell_runs_and_its_result_is_what_is_shown(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.magic("", "model.fit(x)\n") == "the result"
    assert shell.ran == ["# %%pipediag\nmodel.fit(x)\n"], "lines have other numbers than are shown"
    assert Measured.ended == Ended("finished", 0)
    assert capsys.readouterr() == ("", "pipediag: measuring this cell, which runs to its end.\n")


def test_a_cell_that_raises_fails_and_shows_its_traceback_once(shell: Shell) -> None:
    shell.fails = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as raised:
        shell.magic("", "fail()")
    assert raised.value._render_traceback_() == []  # type: ignore[attr-defined]
    assert not hasattr(raised.value, "_render_traceback_"), "%tb would show nothing"
    assert Measured.ended == Ended("raised", 1, "ValueError: mine")


def test_an_option_runs_nothing(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.magic("--steps 40", "model.fit(x)") is None
    assert shell.ran == []
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_line_is_a_directory(shell: Shell) -> None:
    shell.magic(" my report ", "pass")
    assert Measured.asked == (Path("my report"), None)
    assert (shell.counted, shell.execution_count) == ([3], 4), "the number is the cell's"


FILE = "/tmp/ipykernel_12/3456.py"

OLD = "<ipython-input-7-0123456789ab>"

SOURCE = "# %%pipediag\ndataset = dataset.map(slow)\nmodel.fit(dataset)\n"

CELLS = {FILE: Cell("cell In[3]", SOURCE)}


@pytest.fixture
def ipython(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={FILE: 3}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    for name in (FILE, OLD, "/tmp/other.py"):
        entry = (len(SOURCE), None, SOURCE.splitlines(keepends=True), name)
        monkeypatch.setitem(linecache.cache, name, entry)


@pytest.mark.usefixtures("ipython")
def test_cells_are_known_by_what_ipython_calls_them(tmp_path: Path) -> None:
    expected = {**CELLS, OLD: Cell("cell In[7]", SOURCE)}
    assert cells_of_notebook() == expected
    write_cells(tmp_path)
    assert read_cells(tmp_path) == expected


def _session(file: str) -> Session:
    return make_session(
        verdict=make_verdict(
            summary=f"Input is the bottleneck: `map` at {file}:2.",
            reasons=["3456.py can no longer be read."],
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
    assert named.verdict.source.lines[1] == "dataset = dataset.map(slow)"
    assert FILE not in named.model_dump_json()


NOTEBOOKS = CHECKOUT / "docs" / "notebooks"
LIMIT_S = 240


def ran(name: str, folder: Path) -> list[Any]:
    """The code cells of a notebook, with what they gave."""
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=LIMIT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def pages(cell: Any) -> list[str]:
    """The HTML that a cell shows."""
    shown = [output.get("data", {}) for output in cell.outputs]
    return [data["text/html"] for data in shown if "text/html" in data]


def printed(cell: Any) -> str:
    """The result of a cell as text."""
    return "".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def said(cell: Any) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
def test_a_cell_is_measured_in_a_kernel(tmp_path: Path) -> None:
    _, _, magic, watching = ran("slow_training.ipynb", tmp_path)
    session = json.loads((tmp_path / "reports/slow_training/session.json").read_text("utf-8"))
    assert session["script"]["call"] == "cell"
    assert session["script"]["outcome"] == "finished"
    [loop] = session["loops"]
    assert (loop["kind"], loop["file"], loop["line"]) == ("keras", "cell In[3]", 2)
    mapped = next(op for op in session["pipeline"]["ops"] if op["kind"] == "map")
    assert (mapped["file"], mapped["line"]) == ("cell In[2]", 14)
    source = session["verdict"]["source"]
    assert source is None or source["file"].startswith("cell In[")
    assert "ipykernel" not in json.dumps({**session, "environment": None})
    assert printed(magic).startswith("● ")
    assert said(magic).count("pipediag: ") == 1
    assert said(watching).strip()
    assert not pages(watching)


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_is_measured_in_a_kernel(tmp_path: Path) -> None:
    *_, analysed, operations, findings = ran("pipeline_alone.ipynb", tmp_path)
    assert printed(analysed).startswith("● ")
    [table] = pages(operations)
    assert "cell In[2]" in table
    assert pages(findings)
