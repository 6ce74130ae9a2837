"""Which status `pipediag analyze` ends with."""

from __future__ import annotations

from pipediag.errors import ExitStatus


def analyze_status(
    *,
    script_failure: str | None,
    script_status: int | None,
    gate: ExitStatus | None,
    run_to_end: bool,
    reports_written: bool = True,
) -> int:
    """The exit status; negative means: die by that signal, as the script did.

    `script_failure` says how the script ended before enough steps were seen, if it did;
    `gate` is None where no verdict was asked for. Reports that could not be written change only a
    status that would be 0 otherwise, and none that is the script's own.
    """
    if run_to_end and script_status:
        return script_status
    if script_failure is not None and not (run_to_end and script_status == 0):
        return ExitStatus.SCRIPT_FAILED
    if not reports_written and not run_to_end:
        return gate or ExitStatus.USAGE
    return ExitStatus.DONE if gate is None else gate
