"""A recorded session without what names the machine that it was recorded on."""

from __future__ import annotations

import platform
import sys
from pathlib import Path


def of_no_machine(text: str, work: str) -> str:
    """The text of a session whose script ran in the folder `work`."""
    for folder in {work, str(Path(work).resolve())}:
        text = text.replace(folder, "/home/someone/training")
    for prefix in (sys.prefix, sys.base_prefix):
        text = text.replace(prefix, "/home/someone/python")
    return text.replace(platform.platform(), "Linux-x86_64")
