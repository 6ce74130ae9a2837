"""Ids that a table was looked up by, in files for the process that times the table afterwards."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipediag.capture.measuring.id_tally import IdTally
from pipediag.capture.recorder import Recorder
from pipediag.capture.signal_handlers import let_pass
from pipediag.session.recorded_tables import RecordedVariable
from pipediag.session.table_bench import TableKey


class KeptIds:
    """Of all tables of the run; a loop's later ids of a table take the place of earlier ones."""

    def __init__(self, directory: Path, recorder: Recorder) -> None:
        self._directory = directory
        self._recorder = recorder

    def keep(self, record: RecordedVariable, tally: IdTally) -> None:
        """Write the ids of one table, batch by batch; those outside of it are left out.

        A disk that is full costs the table its times and nothing else. The file gets its name when
        it is whole, as the process may be ended at any time.
        """
        np: Any = sys.modules["numpy"]
        key = TableKey(record.layer, record.variable, record.rows, record.dim)
        path = self._directory / key.ids_file
        partial = path.with_name(f"partial-{path.name}")
        try:
            batches = {str(number): ids for number, ids in enumerate(tally.inside())}
            np.savez(partial, **batches)
            partial.replace(path)
        except Exception as error:
            let_pass(error)
            # Those of an earlier loop are no more the table's.
            for left in (partial, path):
                with suppress(OSError):
                    left.unlink()
            self._recorder.note(
                f"The ids of {record.layer} could not be kept, so that its ways out are not "
                f"timed: {type(error).__name__}: {error}"
            )
