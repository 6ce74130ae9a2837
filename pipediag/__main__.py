"""`python -m pipediag` and the `pipediag` console script."""

import os
import sys


def run() -> None:
    """Run the command line, in a process of its own."""
    try:
        search_own_places_first()
        from pipediag.interrupts import INTERRUPTS

        INTERRUPTS.take()
    except KeyboardInterrupt:
        # Ctrl-C came before its handler was installed. The status is that of `INTERRUPTED`.
        os.write(2, b"pipediag: interrupted.\n")
        os._exit(130)
    from pipediag.cli.main import run as run_command_line

    run_command_line()


def search_own_places_first() -> None:
    """Let no module of the user's take the place of one that we need.

    `python -m` puts the working directory, where scripts lie, before the standard library, and so
    does PYTHONPATH with its own. They come last here: pipediag itself may have been found there.

    Started as a file, as `cli/compare.py` does, pipediag is the package that holds it,
    whatever else has that name. The interpreter has put the package's own directory first, in which
    modules are called as some of the standard library are.
    """
    started_as_file = __spec__ is None
    if started_as_file and not sys.flags.safe_path:
        del sys.path[0]
    library = os.path.dirname(os.__file__)  # noqa: PTH120 - before pathlib may be imported
    if library in sys.path:
        place = sys.path.index(library)
        sys.path[:] = [*sys.path[place:], *sys.path[:place]]
    if started_as_file:
        sys.path.insert(1, __file__.rsplit(os.sep, 2)[0])


if __name__ == "__main__":
    run()
