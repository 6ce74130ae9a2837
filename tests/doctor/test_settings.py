from __future__ import annotations

import pytest

from pipediag.doctor.settings import variables


def test_nothing_set() -> None:
    assert variables({"HOME": "/root"}).found.startswith("No variable is set")


def test_harmless_variables_are_shown() -> None:
    check = variables({"OMP_NUM_THREADS": "2", "TF_DETERMINISTIC_OPS": "0"})
    assert check.state == "ok"
    assert check.found == "OMP_NUM_THREADS=2, TF_DETERMINISTIC_OPS=0."


@pytest.mark.parametrize("name", ["CUDA_LAUNCH_BLOCKING", "TF_DETERMINISTIC_OPS"])
def test_slowing_variables_are_warned_of(name: str) -> None:
    check = variables({name: "1"})
    assert check.state == "warn"
    assert name in check.follows
