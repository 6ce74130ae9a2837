from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipediag.cli import doctor
from pipediag.cli.doctor import Imported, all_checks, gpus
from tests.fake_proc import add_cgroup_v2

GPU_BUILD, CPU_BUILD = ["tensorflow"], ["tensorflow-cpu"]
SEES_NONE = Imported("2.21.0", True, [])
NVIDIA = ["NVIDIA Example"]


@pytest.fixture(autouse=True)
def this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "usable_cores", lambda: 4)


@pytest.mark.parametrize("builds", [{"tensorflow-cpu": "2.21.0"}, {}])
def test_every_check_has_a_sentence_and_a_warning_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, builds: dict[str, str]
) -> None:
    monkeypatch.setattr(doctor, "installed_builds", lambda: builds)
    monkeypatch.setattr(doctor, "import_in_child", lambda: Imported("2.21.0", False, []))
    made = list(all_checks())
    names = {check.name for check in made}
    assert len(names) == len(made)
    assert all(check.found for check in made)
    assert all(check.follows and check.do for check in made if check.state != "ok")
    assert ("Import" in names) == bool(builds)


@pytest.mark.parametrize(("quota", "state"), [("max", "ok"), ("400000", "ok"), ("250000", "warn")])
def test_quota(tmp_path: Path, quota: str, state: str) -> None:
    add_cgroup_v2(tmp_path, "", {"cpu.max": f"{quota} 100000\n"})
    check = doctor.quota(tmp_path)
    assert check.state == state
    assert ("2.5 CPUs" in check.found) == (state == "warn")


def test_load() -> None:
    assert [doctor.load(threads).state for threads in (0.5, 3.0)] == ["ok", "warn"]


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
    assert doctor.build(builds).state == state


ANSWER = '["2.21.0", true, [["/CPU:0", "CPU"], ["/GPU:0", "GPU"]]]'


@pytest.mark.parametrize(
    ("code", "imported"),
    [
        (f"print('chatter'); print('''{ANSWER}''')", Imported("2.21.0", True, ["/GPU:0"])),
        ("raise ImportError('no lib')", Imported(error="ImportError: no lib")),
        ("import os; os._exit(7)", Imported(error="it ended with status 7")),
    ],
)
def test_a_child_imports_tensorflow(code: str, imported: Imported) -> None:
    assert doctor.import_in_child((sys.executable, "-c", code)) == imported
    check = doctor.importable(imported)
    assert check.state == ("problem" if imported.error else "ok")
    assert (imported.error or "2.21.0") in check.found


def test_an_import_that_hangs_is_given_up() -> None:
    hanging = (sys.executable, "-c", "import time; time.sleep(60)")
    assert doctor.import_in_child(hanging, timeout_s=0.5).error is not None


@pytest.mark.tensorflow
def test_the_real_tensorflow_answers() -> None:
    imported = doctor.import_in_child(timeout_s=600)
    assert imported.error is None
    assert imported.version is not None


def test_no_gpu_and_a_gpu_that_is_seen_are_fine() -> None:
    seen = Imported("2.21.0", True, ["/GPU:0"])
    assert gpus([], None, CPU_BUILD, SEES_NONE, cuda_packages=False).state == "ok"
    assert gpus(NVIDIA, "550.1", GPU_BUILD, seen, cuda_packages=True).state == "ok"


@pytest.mark.parametrize(
    ("present", "driver", "builds", "imported", "cuda", "visible", "words"),
    [
        (NVIDIA, "550", GPU_BUILD, SEES_NONE, True, "-1", "CUDA_VISIBLE"),
        (NVIDIA, "550", CPU_BUILD, SEES_NONE, False, None, "no GPU support"),
        (NVIDIA, "550", GPU_BUILD, Imported("2.21.0", False, []), True, None, "no GPU support"),
        (NVIDIA, None, GPU_BUILD, SEES_NONE, True, None, "driver does not answer"),
        (["Tesla V100"], None, GPU_BUILD, SEES_NONE, True, None, "driver does not answer"),
        (NVIDIA, "550", GPU_BUILD, SEES_NONE, False, None, "no CUDA libraries"),
        (NVIDIA, "550", GPU_BUILD, SEES_NONE, True, "0", "not known"),
    ],
)
def test_why_a_gpu_is_not_seen(
    present: list[str],
    driver: str | None,
    builds: list[str],
    imported: Imported,
    cuda: bool,
    visible: str | None,
    words: str,
) -> None:
    hidden = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    check = gpus(present, driver, builds, imported, cuda_packages=cuda, environment=hidden)
    assert check.state == "problem"
    assert words in check.found
    assert check.do
