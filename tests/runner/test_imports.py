from __future__ import annotations

import threading

import pytest

from pipediag.runner import imports
from pipediag.runner.imports import FOR_TRIALS, NEEDED, EarlyImports


def test_every_module_that_is_named_can_be_imported() -> None:
    for name in (*NEEDED, *FOR_TRIALS):
        imports.import_module(name)


def test_after_a_stop_no_further_module_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    first_is_in, go_on = threading.Event(), threading.Event()

    def imported(name: str) -> None:
        begun.append(name)
        first_is_in.set()
        go_on.wait(10)

    monkeypatch.setattr(imports, "import_module", imported)
    early = EarlyImports(trials=True)
    early.start()
    assert first_is_in.wait(10)
    early.stop()
    go_on.set()
    early.close()
    assert begun == [NEEDED[0]]


def test_what_trials_need_is_left_out_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(imports, "import_module", begun.append)
    early = EarlyImports(trials=False)
    early.start()
    early.join()
    assert begun == list(NEEDED)


def test_what_never_began_is_closed_all_the_same() -> None:
    EarlyImports(trials=True).close()
