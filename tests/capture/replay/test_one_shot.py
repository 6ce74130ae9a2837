from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.replay import preconditions


@pytest.mark.parametrize(
    "module", ["keras.src.trainers.data_adapters.py_dataset_adapter", "tf_keras.src.utils"]
)
def test_workers_of_any_keras_serve_one_loop_only(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = type("OrderedEnqueuer", (), {"__module__": module})()

    def batches() -> Any:
        return workers

    calls = [(None, SimpleNamespace(generator=batches))]
    monkeypatch.setattr(preconditions, "Graph", lambda _: SimpleNamespace(calls=lambda: calls))

    said = preconditions.one_shot_source(None)
    assert said is not None
    assert "workers of their own" in said
