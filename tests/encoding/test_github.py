from __future__ import annotations

import pytest

from pipediag.encoding.github import LONGEST_MESSAGE, command, inert


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::error::x", r"\x3a:error::x"),
        (" \u3000\t::stop-commands::x", " \u3000\t" + r"\x3a:stop-commands::x"),
        ("said ##[error]x", r"said #\x23[error]x"),
        ("###[group]##[group]", r"##\x23[group]#\x23[group]"),
        ("##VSO[task.setvariable]x", r"#\x23VSO[task.setvariable]x"),
        ("##teamcity[x]", r"#\x23teamcity[x]"),
    ],
)
def test_a_command_is_none(line: str, shown: str) -> None:
    assert inert(line) == shown


@pytest.mark.parametrize("line", ["", "a::b", ": x", "## heading", "#[x]", "std::vector"])
def test_other_lines_stay(line: str) -> None:
    assert inert(line) == line


def test_a_command_is_one_line_with_its_properties_and_no_others() -> None:
    assert command("error", {"file": "a,line=1::b%.py", "line": "3"}, "x\r\n50 %\x1b") == (
        "::error file=a%2Cline=1%3A%3Ab%25.py,line=3::x%0D%0A50 %25\\x1b"
    )


def test_a_message_has_an_end() -> None:
    assert len(command("error", {}, "x" * 1_000_000)) < LONGEST_MESSAGE + 20
