"""Which status `pipediag analyze` ends with."""

from __future__ import annotations

from pipediag.errors import ExitStatus


def analyze_status(
    *,
    script_failure: str | None,
    script_status: int | None,
    gate: ExitStatus | None,
    run_to_end: bool,
) -> int:
    """The exit status; negative means: die by that signal, as the script did.

    `script_failure` says how the script ended before enough steps were seen, if it did;
    `gate` is None where no verdict was asked for.
    """
    if run_to_end and script_status:
        return script_status
    if script_failure is not None and not (run_to_end and script_status == 0):
        return ExitStatus.SCRIPT_FAILED
    return ExitStatus.DONE if gate is None else gate
