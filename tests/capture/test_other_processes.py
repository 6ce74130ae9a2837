from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.process import train_along
from tests.capture.runtimes import ToyRuntime


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("horovod", "mpi4py", "torch.distributed", "jax._src.distributed"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def imported(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    module: Any = SimpleNamespace(**members)
    monkeypatch.setitem(sys.modules, name, module)


def test_what_the_framework_is_connected_to_is_told_as_it_says_so() -> None:
    runtime = ToyRuntime()
    assert train_along(runtime) is None
    runtime.others = "TF_CONFIG names 2 tasks"

    assert train_along(runtime) == (
        "other processes train along (TF_CONFIG names 2 tasks) and would wait for steps that this "
        "one makes alone"
    )


@pytest.mark.parametrize(
    ("package", "variable"), [("horovod", "HOROVOD_SIZE"), ("mpi4py", "OMPI_COMM_WORLD_SIZE")]
)
def test_several_processes_that_exchange_train_together(
    monkeypatch: pytest.MonkeyPatch, package: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "4")
    assert train_along(ToyRuntime()) is None, "a launcher may start what is independent"
    imported(monkeypatch, package)
    assert f"{package} in one of 4 processes" in (train_along(ToyRuntime()) or "")


@pytest.mark.parametrize("size", ["1", "", "many"])
def test_a_process_that_a_launcher_started_alone_trains_for_itself(
    monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    imported(monkeypatch, "horovod")
    monkeypatch.setenv("HOROVOD_SIZE", size)

    assert train_along(ToyRuntime()) is None


@pytest.mark.parametrize(
    ("joined", "size", "alone"), [(False, 2, True), (True, 1, True), (True, 2, False)]
)
def test_a_group_of_torchs_counts_once_it_is_joined(
    monkeypatch: pytest.MonkeyPatch, joined: bool, size: int, alone: bool
) -> None:
    imported(
        monkeypatch,
        "torch.distributed",
        is_available=lambda: True,
        is_initialized=lambda: joined,
        get_world_size=lambda: size,
    )
    assert (train_along(ToyRuntime()) is None) is alone


@pytest.mark.parametrize(("size", "alone"), [(None, True), (1, True), (2, False)])
def test_so_does_one_of_jaxs(
    monkeypatch: pytest.MonkeyPatch, size: int | None, alone: bool
) -> None:
    imported(monkeypatch, "jax._src.distributed", global_state=SimpleNamespace(num_processes=size))
    assert (train_along(ToyRuntime()) is None) is alone
