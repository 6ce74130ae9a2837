"""Runs a script as pipediag does, its standard error looked through; tells what was folded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pipediag.cli.streams import take_standard_streams
from pipediag.runner.framework_log.folding import FoldedLog, folding
from pipediag.runner.signals import HeldSignals

if __name__ == "__main__":
    take_standard_streams()
    directory, script = map(Path, sys.argv[1:])
    folded = FoldedLog()
    with HeldSignals(), folding(folded, directory) as standard_error:
        process = subprocess.Popen(
            [sys.executable, script], stderr=standard_error.given, close_fds=False
        )
        standard_error.is_given()
        process.wait()
    print(json.dumps([folded.lines, folded.last, process.returncode]), flush=True)
