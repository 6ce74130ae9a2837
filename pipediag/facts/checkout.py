"""Where a file is in the repository: what a service shows on a pull request, it looks up there."""

from __future__ import annotations

import os
from pathlib import Path

from pipediag.encoding.visible import clipped

_ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""What GitHub Actions and GitLab call the root: a checkout made without git has no `.git`."""
_LONGEST_PATH = 4_096
"""Characters: Linux opens no file of a longer one."""


def in_checkout(file: str) -> str:
    """A file's path from the repository's root, whichever directory of it the gate is called in.

    Relative ones are taken from the current directory, and files of other places stay as they are.
    """
    if len(file) > _LONGEST_PATH:
        return clipped(file, _LONGEST_PATH)
    here = Path.cwd()
    path = Path(os.path.normpath(here / file))
    root = _root(here)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


def _root(here: Path) -> Path:
    """The nearest directory upwards that git or the service calls so; else the current one."""
    named = {Path(root) for root in map(os.environ.get, _ROOTS) if root}
    for directory in (here, *here.parents):
        if directory in named or (directory / ".git").exists():
            return directory
    return here
