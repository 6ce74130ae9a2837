"""The options of the running interpreter, to start another one with."""

from __future__ import annotations

from collections.abc import Sequence


def interpreter_flags(original_arguments: Sequence[str]) -> list[str]:
    """The options that this interpreter was started with, up to what it was asked to run."""
    flags: list[str] = []
    rest = iter(original_arguments[1:])
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            break
        own, program_begins = _before_program(argument)
        if own:
            flags.append(own)
        if program_begins:
            break
        if argument in ("-W", "-X", "--check-hash-based-pycs"):
            flags.append(next(rest, ""))
    return flags


def _before_program(argument: str) -> tuple[str, bool]:
    """The part of an option, such as `-Bm`, before its `-m` or `-c`; and whether there is one."""
    letters = "" if argument.startswith("--") else argument[1:]
    for index, letter in enumerate(letters):
        if letter in "mc":
            return argument[: index + 1] if index else "", True
        if letter in "WX":
            break
    return argument, False
