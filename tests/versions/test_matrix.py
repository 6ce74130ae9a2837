from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.factories import make_finding, make_session
from tests.samples.expectation import SAMPLES, read_expectation

from . import environments
from .environments import NotMadeError, base_python, interpreter
from .matrix import MATRIX, QUICK_SAMPLES, Environment, chosen, samples_for
from .tried import untried

NEWEST = Environment("3.13", "2.21.0", "3.15.0")


def test_the_oldest_and_the_newest_are_run_unless_others_are_asked_for() -> None:
    assert list(chosen("")) == [MATRIX[0], MATRIX[-1]]
    assert list(chosen("all")) == list(MATRIX)
    assert list(chosen(f"{MATRIX[2].name},{MATRIX[1].name}")) == [MATRIX[2], MATRIX[1]]


def test_continuous_integration_runs_one_sample_of_each_form_of_loop() -> None:
    assert set(samples_for("")) < set(samples_for("all")) == set(QUICK_SAMPLES)
    expected = [read_expectation(SAMPLES / f"{one}.expect.toml") for one in samples_for("")]
    kinds = {kind for one in expected for kind in one.loop_kind or ()}
    assert kinds == {"keras", "eager", "tf_function", "in_graph"}
    assert any(one.trials.confirmed for one in expected)


def test_a_name_of_no_environment_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=rf"no environments: tf1; there are {MATRIX[0].name}"):
        chosen(f"{MATRIX[0].name},tf1")


def test_names_tell_environments_apart() -> None:
    assert NEWEST.name == "tf2.21.0-keras3.15.0-py3.13"
    assert len({environment.name for environment in MATRIX}) == len(MATRIX)


def test_a_verdict_may_stay_open_below_2_17() -> None:
    timed = [environment.times_its_pipelines for environment in MATRIX]
    assert timed == sorted(timed)
    assert [Environment("3.11", f"2.{n}.0").times_its_pipelines for n in (9, 16, 17)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("sample", QUICK_SAMPLES)
def test_each_sample_is_there(sample: str) -> None:
    assert read_expectation(SAMPLES / f"{sample}.expect.toml").script.is_file()


def test_what_is_lost_is_lost_of_samples_that_are_run() -> None:
    assert {sample for one in MATRIX for sample in one.loses} <= set(QUICK_SAMPLES)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What uv is asked for, which makes a directory."""
    made: list[tuple[str, ...]] = []

    def uv(*arguments: str) -> None:
        made.append(arguments)
        if arguments[0] == "venv":
            Path(arguments[-1]).mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(environments, "_uv", uv)
    monkeypatch.setattr(environments, "base_python", lambda version: f"python{version}")
    return made


def test_an_environment_is_made_once(tmp_path: Path, calls: list[tuple[str, ...]]) -> None:
    python = interpreter(NEWEST, tmp_path)
    assert interpreter(NEWEST, tmp_path) == python == tmp_path / NEWEST.name / "bin" / "python"

    (made, installed) = calls
    assert made == ("venv", "--clear", "--python", "python3.13", str(tmp_path / NEWEST.name))
    assert {"tensorflow-cpu==2.21.0", "keras==3.15.0", "-e"} <= set(installed)


def test_it_is_made_again_when_the_project_asks_for_something_else(
    tmp_path: Path, calls: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setattr(environments, "ROOT", project)
    for bounds in ("protobuf>=5", "protobuf>=4.22"):
        (project / "pyproject.toml").write_text(bounds)
        interpreter(NEWEST, tmp_path)
    assert [call[0] for call in calls] == ["venv", "pip", "venv", "pip"]


def test_one_that_was_broken_off_is_made_again(
    tmp_path: Path, calls: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / NEWEST.name / "bin").mkdir(parents=True)
    interpreter(NEWEST, tmp_path)
    assert len(calls) == 2


def test_an_index_that_does_not_answer_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(command: list[str], *, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(environments, "base_python", lambda version: f"python{version}")
    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(NotMadeError, match=r"uv venv took longer than \d+ s\."):
        interpreter(NEWEST, tmp_path)


def test_a_python_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "base_python", lambda _: None)
    with pytest.raises(NotMadeError, match=r"no Python 3\.13 here"):
        interpreter(NEWEST, tmp_path)


def test_a_python_that_does_not_start_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "python9.9"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert base_python("9.9") is None

    real = tmp_path / ".pyenv" / "versions" / "9.9.1" / "bin" / "python9.9"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\necho 9.9\n")
    real.chmod(0o755)
    assert base_python("9.9") == str(real)


def test_a_trial_counts_whatever_it_found() -> None:
    expected = read_expectation(SAMPLES / "blocking_numpy_function.expect.toml")
    (rule,) = expected.trials.confirmed
    finding = make_finding(rule=rule)
    tried = finding.model_copy(
        update={"trial": finding.trial.model_copy(update={"state": "refuted"})}
    )
    lost = finding.model_copy(
        update={"trial": finding.trial.model_copy(update={"state": "not_tried", "reason": "none"})}
    )
    assert untried(expected, make_session(findings=[tried])) == []
    assert untried(expected, make_session(findings=[lost])) == [
        f"none of ('{rule}',) was tried: {{'{rule}': 'none'}}"
    ]
    assert "was tried" in untried(expected, make_session(findings=[]))[0]
