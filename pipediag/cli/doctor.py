"""`pipediag doctor`: what on this machine would spoil a measurement."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from pipediag.cli.say import deliver, say
from pipediag.encoding.terminal import one_line

if TYPE_CHECKING:
    from pipediag.runner.doctor.check import Check

COLOURS = {"ok": "green", "warn": "yellow", "problem": "red"}
STATE_WIDTH = 9
NAME_WIDTH = 17
TEXT_WIDTH = 100


@click.command(name="doctor")
@click.option(
    "--no-tensorflow",
    is_flag=True,
    help="Do not import TensorFlow in a child process; judge by the installed packages.",
)
def command(no_tensorflow: bool) -> None:
    """Look for what would spoil a measurement on this machine.

    TensorFlow and its GPU libraries, CPU quota and load, memory, clocks. Exit status: 0, whatever
    is found.
    """
    from pipediag.runner.doctor.checks import all_checks

    states: Counter[str] = Counter()
    for check in all_checks(ask_tensorflow=not no_tensorflow):
        deliver(render(check) + "\n")
        states[check.state] += 1
    say(_summary(states), err=False)


def render(check: Check) -> str:
    """One line, and below it what follows and what to do."""
    state = click.style(f"{check.state:<{STATE_WIDTH}}", fg=COLOURS[check.state])
    lines = [f"{state}{check.name:<{NAME_WIDTH}}{one_line(check.found)}"]
    indent = " " * (STATE_WIDTH + NAME_WIDTH)
    lines += [
        click.wrap_text(one_line(text), TEXT_WIDTH, indent, indent)
        for text in (check.follows, check.do and f"To do: {check.do}")
        if text
    ]
    return "\n".join(lines)


def _summary(states: Counter[str]) -> str:
    problems, warnings = states["problem"], states["warn"]
    if not problems and not warnings:
        return "\nNothing here would spoil a measurement."
    return f"\nProblems: {problems}. Warnings: {warnings}. The rest is fine."
