"""The child process: runs the user's script as Python would, with capture hooked in.

Started by the parent as a file, `python start.py SETTINGS.json`, so that a module in the user's
working directory cannot take the place of one that is needed here. With `native` before the
settings nothing is observed.
"""

import os
import sys
import time

AT_START = frozenset(sys.modules)
"""Modules that the interpreter itself has imported. All else that is imported here is ours."""

REFUSED = 2


def main() -> None:
    """Run the script that the settings file names; end as the script ends."""
    began_ns = time.monotonic_ns()
    path = _search_own_places_only()
    from pathlib import Path

    from pipediag.capture import Capture, StopScript
    from pipediag.capture.link import Teller
    from pipediag.capture.process import HeldInterrupts
    from pipediag.child.ending import Ending, contains
    from pipediag.child.execution import prepare, remove_shadowed_modules
    from pipediag.descriptors import occupy_closed
    from pipediag.session.messages import Refused, RunSettings, Started

    sys.path[:] = path
    closed = occupy_closed()
    settings = RunSettings.read(Path(sys.argv[-1]))
    teller = Teller(settings.progress_fd)
    interrupts = HeldInterrupts()
    ending = Ending(teller, interrupts)
    capture = Capture(settings, teller, interrupts=interrupts)
    ending.record_with(capture)
    run = prepare(settings, own_arguments=2 if __spec__ is None else 3)
    ending.end_with_thread(StopScript)
    capture.install()
    remove_shadowed_modules(AT_START)
    for descriptor in closed:
        os.close(descriptor)
    teller.tell(Started())
    capture.script_begins(began_ns)
    try:
        if settings.unblock_interrupts:
            interrupts.unblock()
        run()
        ending.begins()
    except BaseException as error:
        ending.begins()
        if contains(error, StopScript):
            ending.stopped()
            sys.exit(0)
        # The interpreter's `-m` gave up before the module's code began.
        refused = isinstance(error, SystemExit) and str(error).startswith(f"{sys.executable}: ")
        if settings.module and refused:
            teller.tell(Refused(str(error).removeprefix(f"{sys.executable}: ")))
            sys.exit(REFUSED)
        ending.failed(error)
        raise
    ending.finished()


def run_natively(seed: str | None = None, results: str | None = None) -> None:
    """Run the script as it is, but for the files that the settings replace.

    With `results`, the name of a file, its first batches and losses are recorded there.
    """
    path = _search_own_places_only()
    from pathlib import Path

    from pipediag.child.execution import prepare, remove_shadowed_modules
    from pipediag.session.messages import RunSettings

    sys.path[:] = path
    arguments = 3 if results is None else 5
    run = prepare(RunSettings.read(Path(sys.argv[-1])), own_arguments=arguments)
    if seed is None or results is None:
        remove_shadowed_modules(AT_START)
        run()
        return
    from pipediag.capture.results import Results

    remove_shadowed_modules(AT_START)
    recorded = Results(results, int(seed))
    recorded.install()
    try:
        run()
    finally:
        # Also where the script ends by sys.exit.
        recorded.write()


def _search_own_places_only() -> list[str]:
    """Look for modules where none of the user's can be; return the import path to restore.

    The directories in PYTHONPATH come before the standard library, and the interpreter has put
    ours first.
    """
    # Python 3.10 has no -P; -I alone keeps the directory out of the path there.
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        del sys.path[0]
    given = list(sys.path)
    library = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib is not ours to import yet
    compiled = [entry for entry in given if os.path.basename(entry) == "lib-dynload"]  # noqa: PTH119
    sys.path[:] = [library, *compiled, __file__.rsplit(os.sep, 3)[0]]
    return given


if __name__ == "__main__":
    if sys.argv[1] in ("native", "results"):
        run_natively(*sys.argv[2:-1])
    else:
        main()
