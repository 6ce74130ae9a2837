from __future__ import annotations

import os

ASKED = "PIPEDIAG_VERSIONS"
"""Set by `make test-versions`: which environments, see `matrix.chosen`."""

collect_ignore = [] if ASKED in os.environ else ["test_samples_in_versions.py"]
