from __future__ import annotations

import gc
import warnings
from pathlib import Path

from pipediag.library.own_directory import OwnDirectory


def test_it_goes_with_the_last_who_holds_it_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        directory = OwnDirectory()
        place = Path(directory.name)
        (place / "file").write_text("x")
        del directory
        gc.collect()
    assert not place.exists()


def test_it_may_be_removed_before_and_may_be_gone() -> None:
    directory = OwnDirectory()
    directory.cleanup()
    directory.cleanup()
    assert not Path(directory.name).exists()
