from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _float32_afterwards() -> Iterator[None]:
    """Policies hold for the whole process."""
    yield
    if "tensorflow" in sys.modules:
        import keras

        keras.config.set_dtype_policy("float32")
