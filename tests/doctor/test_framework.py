from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pipediag.doctor import framework
from pipediag.doctor.framework import Imported, Installed


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_installed_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("tensorflow", "nvidia_cudnn_cu12", "nvidia-ml-py", "numpy")
    found = [SimpleNamespace(metadata={"Name": name}, version="1.0") for name in names]
    monkeypatch.setattr(framework, "distributions", lambda: found)
    assert framework.installed() == Installed({"tensorflow": "1.0"}, ["nvidia-cudnn-cu12"])


@pytest.mark.parametrize(
    ("builds", "state"),
    [
        ({}, "problem"),
        ({"tensorflow": "2.21.0"}, "ok"),
        ({"tensorflow-cpu": "2.14.0"}, "ok"),
        ({"tensorflow-cpu": "2.13.1"}, "problem"),
        ({"tensorflow": "2.21.0", "tensorflow-cpu": "2.20.0"}, "warn"),
    ],
)
def test_build(builds: dict[str, str], state: str) -> None:
    assert framework.build(Installed(builds)).state == state


def test_a_build_is_cpu_only_by_its_name() -> None:
    assert Installed({"tensorflow-cpu": "2"}).cpu_only
    assert not Installed({"tensorflow": "2", "tensorflow-cpu": "2"}).cpu_only
    assert not Installed({}).cpu_only


def test_the_last_line_of_the_child_is_its_answer() -> None:
    answer = '["2.21.0", true, [["/CPU:0", "CPU"], ["/GPU:0", "GPU"]]]'
    imported = framework.import_in_child(python(f"print('chatter'); print('''{answer}''')"))
    assert imported == Imported("2.21.0", True, ["/GPU:0"])
    assert framework.importable(imported).state == "ok"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise ImportError('no libexample')", "ImportError: no libexample"),
        ("import os; os._exit(7)", "it ended with status 7"),
    ],
)
def test_an_import_that_fails_says_why(code: str, error: str) -> None:
    imported = framework.import_in_child(python(code))
    assert imported.error == error
    check = framework.importable(imported)
    assert check.state == "problem"
    assert error in check.found


def test_an_import_that_hangs_is_given_up() -> None:
    imported = framework.import_in_child(python("import time; time.sleep(60)"), timeout_s=0.5)
    assert imported.error == "importing it took longer than 0.5 s"


@pytest.mark.tensorflow
def test_the_real_tensorflow_answers() -> None:
    imported = framework.import_in_child()
    assert imported.error is None
    assert imported.version is not None
