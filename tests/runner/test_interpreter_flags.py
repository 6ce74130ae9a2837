from __future__ import annotations

import pytest

from pipediag.runner.interpreter_flags import interpreter_flags


@pytest.mark.parametrize(
    ("original", "flags"),
    [
        (["python", "-m", "pipediag", "-u"], []),
        (["python", "/bin/pipediag", "-u"], []),
        (["python", "-u", "-m", "pipediag"], ["-u"]),
        (["python", "-W", "error", "-Xdev", "-m", "pipediag"], ["-W", "error", "-Xdev"]),
        (["python", "-X", "dev", "-c", "x"], ["-X", "dev"]),
        (["python", "-Bmpipediag"], ["-B"]),
        (["python", "-Bm", "pipediag"], ["-B"]),
        (["python"], []),
    ],
)
def test_interpreter_flags_end_where_the_program_begins(
    original: list[str], flags: list[str]
) -> None:
    assert interpreter_flags(original) == flags
