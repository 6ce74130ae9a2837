"""The process that times tables: `python start.py PLAN.json`, a file that `BenchPlan` describes.

Started as a file, so that no module in the user's working directory takes the place of ours.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Time what the plan asks for."""
    # The directory that the interpreter put there is ours, and its modules are no one's top ones.
    sys.path[0] = str(Path(__file__).parents[2])
    from pipediag.session.table_bench import BenchPlan
    from pipediag.table_bench.timing import time_tables

    time_tables(BenchPlan.read(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
