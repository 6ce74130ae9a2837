from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from .case import Case

MakeCase = Callable[..., Case]


@pytest.fixture
def make_case(tmp_path: Path) -> MakeCase:
    """`make_case(text, *arguments, helper="...", variables={...})`: main.py and files beside it.

    A file beside the script is given by its stem: `helper="..."` becomes helper.py.
    """

    def make(
        text: str, *arguments: str, variables: dict[str, str] | None = None, **modules: str
    ) -> Case:
        files = {"main.py": text} | {f"{stem}.py": code for stem, code in modules.items()}
        texts = {name: dedent(code) for name, code in files.items()}
        return Case(tmp_path, texts, arguments, variables or {})

    return make
