from __future__ import annotations

import os

ASKED = "PIPEDIAG_VERSIONS"
"""Set by `make test-versions`: which environments, see `environments.chosen`."""

collect_ignore_glob = [] if ASKED in os.environ else ["test_*.py"]
