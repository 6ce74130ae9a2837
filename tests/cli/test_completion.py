"""What a shell is told where a word is completed."""

from __future__ import annotations

import pytest
from click.shell_completion import BashComplete

from pipediag.cli.main import pipediag

OTHERS = ["json", "markdown", "perfetto"]


def completed(*words: str) -> list[str]:
    shell = BashComplete(pipediag, {}, "pipediag", "_PIPEDIAG_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ex",), ["explain"]),
        (("sh",), ["show"]),
        (("explain", "embedding-"), ["embedding-ids", "embedding-update"]),
        (("explain", "tr"), ["trace-only-python", "trials"]),
        (("show", "--for"), ["--format"]),
        (("check", "--format", "m"), ["markdown"]),
        (("show", "x", "--format", "p"), ["perfetto"]),
        (("show", "x", "--format", "csv,html,"), [f"csv,html,{name}" for name in OTHERS]),
    ],
)
def test_commands_options_and_rules(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected
