from __future__ import annotations

import pytest

from pipediag.tensorflow_versions import is_too_old, too_old_sentence


@pytest.mark.parametrize("version", ["1.15.5", "2.9.3", "2.12.1", "2.13.0rc1", "2.13.0.dev20230"])
def test_what_is_older_than_the_oldest_is_too_old(version: str) -> None:
    assert is_too_old(version)


@pytest.mark.parametrize(
    "version", ["2.14.0", "2.14.0rc0", "2.21.0", "3.0.0", None, "", "unknown", "2", "2.x.1"]
)
def test_newer_ones_and_unknown_ones_are_not(version: str | None) -> None:
    assert not is_too_old(version)


def test_the_sentence_names_both_versions() -> None:
    assert too_old_sentence("2.13.1") == (
        "TensorFlow 2.13.1 is too old for pipediag, which measures 2.14 and newer."
    )
