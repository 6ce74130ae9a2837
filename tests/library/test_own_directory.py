from __future__ import annotations

import gc
import os
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


def test_a_forked_child_leaves_it_to_whose_it_is() -> None:
    directory = OwnDirectory()
    child = os.fork()
    if child == 0:
        directory.cleanup()
        os._exit(0)
    os.waitpid(child, 0)

    assert Path(directory.name).is_dir()
    directory.cleanup()


def test_it_may_be_removed_before_and_may_be_gone() -> None:
    directory = OwnDirectory()
    directory.cleanup()
    directory.cleanup()
    assert not Path(directory.name).exists()
