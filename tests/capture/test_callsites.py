"""Lines and functions of the user: whose a file is, what called, and what a wrapper hides."""

from __future__ import annotations

import functools
import gc
import inspect
import sys
import threading
import weakref
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pipediag.capture import callsites
from pipediag.capture.callsites import (
    CallSite,
    call_site,
    is_users,
    locals_of,
    may_come_back,
    package_of,
    place_of,
    unwrap,
    users_stack,
)

SITE = "/opt/python/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("filename", "package"),
    [
        (f"{SITE}/keras/src/trainers/trainer.py", "keras"),
        ("/usr/lib/python3/dist-packages/tensorflow/a.py", "tensorflow"),
        ("/home/me/keras/train.py", None),
        ("/home/me/site-packages", None),
    ],
)
def test_package_of_an_installed_file(filename: str, package: str | None) -> None:
    assert package_of(filename) == package


@pytest.mark.parametrize(
    ("filename", "users"),
    [
        ("/home/me/train.py", True),
        (f"{SITE}/somebodys_models/data.py", True),
        (f"{SITE}/tensorflow/python/a.py", False),
        (f"{SITE}/tf_keras/src/a.py", False),
        (f"{SITE}/tensorflow_datasets/core/reader.py", False),
        (f"{SITE}/tree/__init__.py", False),  # TensorFlow Datasets makes pipelines through it
        (f"{SITE}/wrapt/wrappers.py", False),  # which decorates its functions
        (f"{SITE}/tqdm/std.py", False),
        (threading.__file__, False),
        (callsites.__file__, False),
        ("<frozen runpy>", False),
        ("<string>", False),
        ("/tmp/__autograph_generated_filek3.py", False),
    ],
)
def test_whose_code_it_is(filename: str, users: bool) -> None:
    assert is_users(filename) is users


def defined(filename: str, source: str, **names: Any) -> dict[str, Any]:
    """What a file of that name defines, beside these names."""
    exec(compile(source, filename, "exec"), names)
    return names


@pytest.mark.parametrize(
    ("package", "by_framework"),
    [("keras", True), ("tensorflow_datasets", True), ("torch", True), ("tensorflow", False)],
)
def test_a_call_that_a_framework_makes(package: str, by_framework: bool) -> None:
    text = "def fit():\n    return call_site()\n"
    fit = defined(f"{SITE}/{package}/a.py", text, call_site=call_site)["fit"]
    run = defined("/home/me/train.py", "def run():\n\n    return fit()\n", fit=fit)["run"]

    assert run() == CallSite("/home/me/train.py", 3, "run", by_framework)


def test_a_library_in_a_folder_of_its_own_is_installed_but_not_in_that_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = tmp_path / "pillow-11.0.dist-info"
    records.mkdir()
    (records / "RECORD").write_text("PIL/ImageFile.py,sha256=x,1\npillow.libs/a.so,,\nsix.py,,\n")
    names = ("PIL/ImageFile.py", "six.py", "mine.py")
    for path, packages in (
        (["/home/me", str(tmp_path)], ["PIL", "six", None]),
        ([str(tmp_path)], [None] * 3),
    ):
        monkeypatch.setattr(sys, "path", path)
        package_of.cache_clear()
        assert [package_of(str(tmp_path / name)) for name in names] == packages


def plain(x: int) -> int:
    return x


@functools.wraps(plain)
def decorated(*args: Any) -> int:
    return plain(*args)


class Traced:
    python_function = staticmethod(plain)

    def __call__(self, *args: Any) -> int:
        return plain(*args)


@pytest.mark.parametrize(
    "function",
    [
        plain,
        decorated,
        functools.partial(plain, 1),
        functools.partial(functools.partial(decorated), 1),
        functools.lru_cache(plain),
        Traced(),
        functools.partial(Traced()),
    ],
)
def test_the_plain_function_is_found(function: Any) -> None:
    assert unwrap(function) is plain


class Held: ...


def calling_frame() -> FrameType:
    frame = inspect.currentframe()
    assert frame.f_back is not None
    return frame.f_back


def test_what_a_variable_held_goes_when_the_frame_lets_go_of_it() -> None:
    iterator = Held()
    gone = weakref.ref(iterator)

    assert locals_of(calling_frame())["iterator"] is iterator
    iterator = Held()

    assert gone() is None
    assert locals_of(calling_frame())["iterator"] is iterator


FRAMEWORKS_CALL = CallSite("train.py", 20, "<module>", by_framework=True)


@pytest.fixture
def called_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callsites, "call_site", lambda: FRAMEWORKS_CALL)


def step(batch: Any) -> Any:
    return batch


@pytest.mark.usefixtures("called_from")
def test_a_function_of_the_scripts_is_where_it_is_defined() -> None:
    line = step.__code__.co_firstlineno

    assert place_of(step) == ("step", CallSite(__file__, line, "step", by_framework=False))
    assert place_of(functools.partial(step, 1)) == place_of(step)


@pytest.mark.usefixtures("called_from")
def test_a_frameworks_function_is_where_it_is_called() -> None:
    library = defined(f"{SITE}/keras/src/trainer.py", "def one_step(): ...")

    assert place_of(library["one_step"]) == ("one_step", FRAMEWORKS_CALL)


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_the_frames_of_threads_are_walked(
    enabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    collecting: list[bool] = []

    class Frame:
        f_code, f_lineno = plain.__code__, 7

        @property
        def f_back(self) -> None:
            collecting.append(gc.isenabled())

    def frames() -> dict[int, Frame]:
        collecting.append(gc.isenabled())
        return {-1: Frame()}

    monkeypatch.setattr(sys, "_current_frames", frames)
    try:
        if not enabled:
            gc.disable()
        callsites.stacks()
        assert (collecting, gc.isenabled()) == ([False, False], enabled)
    finally:
        gc.enable()


LOOPS = """
def step():
    mark("step")

def epoch(times):
    for n in range(times):
        step()
        mark("in the loop")
    mark("behind the loop")

def run():
    epoch(1)
    mark("in the function that called it")

def train():
    for n in range(1):
        epoch(1)
        mark("between epochs")
    mark("after the training")

{call}
mark("at the end")
"""


@pytest.mark.parametrize(
    ("call", "over"),
    [
        ("run()", {"behind the loop", "in the function that called it", "at the end"}),
        ("train()", {"after the training", "at the end"}),
        ("for n in range(1):\n    run()", {"at the end"}),
    ],
)
def test_a_loop_is_over_where_no_loop_of_the_script_leads_back_to_its_step(
    call: str, over: set[str], tmp_path: Path
) -> None:
    script, stacks = tmp_path / "train.py", dict[str, callsites.Stacked]()

    def mark(name: str) -> None:
        stacks[name] = [one for one in users_stack() if one[0].co_filename == str(script)]

    script.write_text(LOOPS.format(call=call), encoding="utf-8")

    def in_script() -> None:
        exec(compile(script.read_text("utf-8"), str(script), "exec"), {"mark": mark})

    thread = threading.Thread(target=in_script)
    thread.start()
    thread.join()
    at_step = stacks.pop("step")
    assert {name for name, here in stacks.items() if not may_come_back(at_step, here)} == over
