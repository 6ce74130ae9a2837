"""Ids that a table was looked up by, in files for the process that times the table afterwards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pipediag.capture.measuring.id_tally import IdTally
from pipediag.capture.recorder import Recorder
from pipediag.session.recorded_tables import RecordedVariable
from pipediag.session.table_bench import TableKey


class KeptIds:
    """Of all tables of the run; a loop's later ids of a table take the place of earlier ones."""

    def __init__(self, directory: Path, recorder: Recorder) -> None:
        self._directory = directory
        self._recorder = recorder

    def keep(self, record: RecordedVariable, tally: IdTally) -> None:
        """Write the ids of one table, batch by batch; those outside of it are left out.

        A disk that is full costs the table its times and nothing else.
        """
        np: Any = sys.modules["numpy"]
        key = TableKey(record.layer, record.variable, record.rows, record.dim)
        batches = {str(number): ids for number, ids in enumerate(tally.inside())}
        path = self._directory / key.ids_file
        try:
            np.savez(path, **batches)
        except OSError as error:
            path.unlink(missing_ok=True)
            self._recorder.note(
                f"The ids of {record.layer} could not be kept, so that its ways out are not "
                f"timed: {error}."
            )
