"""`pipediag doctor`: find what would spoil a measurement on this machine."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from pipediag.cli.common import deliver, say, text_width
from pipediag.encoding.text import one_line

if TYPE_CHECKING:
    from pipediag.doctor import Check

COLOURS = {"ok": "green", "warn": "yellow", "problem": "red"}
STATE_WIDTH = 9
TEXT_WIDTH = 100


@click.command(name="doctor")
@click.option(
    "--no-tensorflow", is_flag=True, help="Judge TensorFlow by its package, without importing it."
)
def command(no_tensorflow: bool) -> None:
    """Find what would spoil a measurement on this machine.

    It looks at TensorFlow and its GPU libraries, CPU quota and load, memory and clocks. Exit
    status: 0, whatever is found.
    """
    from pipediag.doctor import all_checks

    states: Counter[str] = Counter()
    for check in all_checks(ask_tensorflow=not no_tensorflow):
        deliver(render(check) + "\n")
        states[check.state] += 1
    problems, warnings = states["problem"], states["warn"]
    summary = f"Problems: {problems}. Warnings: {warnings}. The rest is fine."
    if not problems and not warnings:
        summary = "Nothing here would spoil a measurement."
    say(f"\n{summary}", err=False)


def render(check: Check) -> str:
    """Return a line, and below it what follows and what to do."""
    width = text_width(sys.stdout, TEXT_WIDTH)
    indent = " " * STATE_WIDTH
    # The state is added after wrapping: its colour has no width.
    texts = (f"{check.name}: {check.found}", check.follows, check.do and f"To do: {check.do}")
    lines = [click.wrap_text(one_line(text), width, indent, indent) for text in texts if text]
    state = click.style(f"{check.state:<{STATE_WIDTH}}", fg=COLOURS[check.state])
    return state + "\n".join(lines)[STATE_WIDTH:]
