"""The child process: runs the user's script as Python would, with capture hooked in.

Started by the parent as a file, `python child.py SETTINGS.json`, so that a module in the user's
working directory cannot take the place of one that is needed here; `python -m` works as well.
"""

from __future__ import annotations

import sys
from pathlib import Path

REFUSED = 2


def main() -> None:
    """Run the script that the settings file names; end as the script ends."""
    _restore_import_path()
    from pipediag.runner.ending import Ending
    from pipediag.session.settings import RunSettings

    settings = RunSettings.read(Path(sys.argv[-1]))
    ending = Ending(settings.progress_fd)

    from pipediag.capture import Capture, StopScript
    from pipediag.runner.execution import prepare
    from pipediag.runner.own_frames import contains

    sys.path.pop()
    capture = Capture(settings)
    ending.record_with(capture)
    run = prepare(settings, own_arguments=2 if __spec__ is None else 3)
    ending.end_with_thread(StopScript)
    capture.install()
    ending.tell("started")
    try:
        run()
    except BaseException as error:
        if contains(error, StopScript):
            ending.stopped()
            sys.exit(0)
        if settings.module and _found_no_module(error):
            ending.tell("refused", message=str(error).removeprefix(f"{sys.executable}: "))
            sys.exit(REFUSED)
        ending.failed(error)
        raise
    ending.finished()


def _restore_import_path() -> None:
    """Undo the interpreter's entry for us; let pipediag be found, last, until it is imported."""
    if not sys.flags.safe_path:
        del sys.path[0]
    sys.path.append(str(Path(__file__).parents[2]))


def _found_no_module(error: BaseException) -> bool:
    """Whether the interpreter's own `-m` gave up before the module's code, not the module."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return (
        isinstance(error, SystemExit)
        and str(error).startswith(f"{sys.executable}: ")
        and traceback is not None
        and traceback.tb_frame.f_code.co_name == "_run_module_as_main"
    )


if __name__ == "__main__":
    main()
