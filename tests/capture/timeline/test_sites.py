"""Where a function that is called for the first time is looked for, and under which name."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from pipediag.capture import callsites as sites
from pipediag.capture.callsites import CallSite, place_of

HERE = __file__
CALL = CallSite("train.py", 20, "<module>", by_framework=True)


@pytest.fixture(autouse=True)
def called_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "call_site", lambda: CALL)


def step(batch: Any) -> Any:
    return batch


def test_a_function_of_the_scripts_is_where_it_is_defined() -> None:
    line = step.__code__.co_firstlineno

    assert place_of(step) == ("step", CallSite(HERE, line, "step", by_framework=False))
    assert place_of(functools.partial(step, 1)) == place_of(step)


def test_a_nested_function_has_its_own_name() -> None:
    def inner() -> None: ...

    name, site = place_of(inner)
    assert name == "inner"
    assert site is not None
    assert site.line == inner.__code__.co_firstlineno


def test_a_frameworks_function_is_where_it_is_called() -> None:
    library: dict[str, Any] = {}
    file = "/usr/lib/site-packages/keras/src/trainer.py"
    exec(compile("def one_step(): ...", file, "exec"), library)

    assert place_of(library["one_step"]) == ("one_step", CALL)


def test_what_has_no_code_is_named_by_its_class() -> None:
    assert place_of(len) == ("len", CALL)
    assert place_of(5) == ("int", CALL)


def test_a_name_that_is_no_text_is_none() -> None:
    class Odd:
        __qualname__ = "Odd"  # type: ignore[assignment]

        def __init__(self) -> None:
            self.__qualname__ = ["not", "a", "name"]
            self.__code__ = None

    assert place_of(Odd()) == ("Odd", CALL)
