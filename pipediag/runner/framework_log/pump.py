"""A process of its own that carries a script's standard error on to where it is meant to go.

Started as a file by `folding`. It lives as long as anything can be written to it: whether pipediag
is killed, or a daemon of the script's outlives both, nobody's writing fails that would have
succeeded without it.
"""

import os
import sys


def main() -> None:
    """Carry on what comes in at the descriptor that the arguments name, until its end."""
    # A file in a package: its modules are found from the folder that holds pipediag.
    sys.path.append(__file__.rsplit(os.sep, 4)[0])
    from pipediag.runner.framework_log.carrier import Carrier, copy_all, stand_by

    source, asked = int(sys.argv[1]), int(sys.argv[2])
    stand_by(source, asked)
    try:
        Carrier(source, asked, sys.argv[3]).run()
    except Exception:  # noqa: BLE001 - whatever is wrong with us, the script is to go on
        copy_all(source)
    os._exit(0)


if __name__ == "__main__":
    main()
