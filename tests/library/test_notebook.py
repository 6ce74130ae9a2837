"""`%%pipediag`, in a shell that stands for IPython's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import pipediag
from pipediag.library import before_exit, notebook, watching
from pipediag.session.messages import Ended


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

    wishes: Any = None
    ended: Any = None
    finishes: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self, wishes: Any, call: str, *_: object) -> None:
        Measured.wishes = wishes
        assert call == "cell"

    def leave(self, ended: Ended, *, when_wanted: object) -> None:
        Measured.ended = ended

    def finish(self) -> str:
        Measured.finishes()
        return "the result"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setattr(watching, "Alongside", Measured)
    shell = Shell()
    pipediag.load_ipython_extension(shell)
    yield shell
    before_exit._end_all()  # a cell that raised has its session made meanwhile


def test_the_cell_runs_and_its_result_is_what_is_shown(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.magic("", "model.fit(x)\n") == "the result"
    assert shell.ran == ["# %%pipediag\nmodel.fit(x)\n"], "lines have other numbers than are shown"
    assert Measured.ended == Ended("finished", 0)
    assert capsys.readouterr() == ("", "pipediag: measuring this cell, which runs to its end.\n")


def test_what_runs_has_the_number_of_the_cell(shell: Shell) -> None:
    shell.magic("", "pass")
    assert (shell.counted, shell.execution_count) == ([3], 4)


def test_a_magic_of_the_cells_own_stays_the_first_line(shell: Shell) -> None:
    shell.magic("", "%%time\nmodel.fit(x)\n")
    assert shell.ran == ["%%time\nmodel.fit(x)\n"]


def test_a_cell_that_raises_fails_and_shows_its_traceback_once(shell: Shell) -> None:
    shell.fails = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as raised:
        shell.magic("", "fail()")
    assert raised.value._render_traceback_() == []  # type: ignore[attr-defined]
    assert not hasattr(raised.value, "_render_traceback_"), "%tb would show nothing"
    assert Measured.ended == Ended("raised", 1, "ValueError: mine")


def test_a_cell_that_raises_is_not_kept_waiting_for_its_session(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()
    waited: list[bool] = []
    monkeypatch.setattr(Measured, "finishes", lambda: waited.append(failed.wait(60)))
    shell.fails = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        shell.magic("", "interrupted()")
    failed.set()
    before_exit._end_all()
    assert waited == [True]


def test_options_are_the_commands(shell: Shell) -> None:
    shell.magic("-o 'my report' --steps 40", "pass")
    assert Measured.wishes == notebook.Wishes(notebook.Path("my report"), 40)


@pytest.mark.parametrize("line", ["--speed 3", "--steps many", "--steps 0", "-o 'open"])
def test_a_wrong_option_runs_nothing(
    shell: Shell, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.magic(line, "model.fit(x)") is None
    assert shell.ran == []
    said = capsys.readouterr().err
    assert said.startswith("pipediag: ")
    assert said.endswith("The cell was not run.\n")
    assert len(said.splitlines()) == 1


def test_the_extension_can_be_unloaded(shell: Shell) -> None:
    pipediag.unload_ipython_extension(shell)
    assert shell.magics_manager.magics["cell"] == {}
