"""Scalars for TensorBoard, in a file of events of their own.

The events are written as TensorFlow's own summary operations write them, but by none of these: the
program's default writer, graph and device are left alone, and the package TensorBoard is not needed
to write what it reads.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from pipediag.errors import PipediagError
from pipediag.session.model import Session

RUN = "pipediag"
"""The run that TensorBoard shows, beside those of the training in the same directory."""
_VERSION = "brain.Event:2"


class TensorBoard:
    """Writes into `<directory>/pipediag`, whose file is made with the first scalars."""

    name = "TensorBoard"

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._file: Any = None

    def write(self, session: Session, figures: Mapping[str, float], number: int) -> None:  # noqa: ARG002
        """Add a point to the curve of each figure.

        Raises:
            PipediagError: TensorFlow is not imported.
        """
        tensorflow = sys.modules.get("tensorflow")
        if tensorflow is None:
            raise PipediagError("TensorFlow is not imported, which writes the scalars.")
        v1 = tensorflow.compat.v1
        if self._file is None:
            self._file = self._opened(tensorflow)
        values = [
            v1.Summary.Value(tag=f"pipediag/{key}", simple_value=value)
            for key, value in figures.items()
        ]
        event = v1.Event(wall_time=time.time(), step=number, summary=v1.Summary(value=values))
        self._file.write(event.SerializeToString())
        self._file.flush()

    def _opened(self, tensorflow: Any) -> Any:
        folder = os.path.join(self._directory, RUN)  # noqa: PTH118 - it may be remote: gs://...
        tensorflow.io.gfile.makedirs(folder)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        file = tensorflow.io.TFRecordWriter(f"{folder}/{name}.{time.monotonic_ns()}")
        version = tensorflow.compat.v1.Event(wall_time=time.time(), file_version=_VERSION)
        file.write(version.SerializeToString())
        return file
