from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipediag.capture.replay.disk_cache import filesystem_of


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists its mounts in /proc")
def test_the_kind_of_a_filesystem_is_known() -> None:
    assert filesystem_of(Path("/proc")) == "proc"
