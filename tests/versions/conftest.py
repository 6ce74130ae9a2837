from __future__ import annotations

import os

ASKED = "PIPEDIAG_VERSIONS"
"""Set by `make test-versions`: which environments, see `environments.chosen`."""

LOWEST_ASKED = "PIPEDIAG_LOWEST"
"""Set by `make test-lowest`."""

collect_ignore = [
    file
    for file, variable in (
        ("test_samples_in_versions.py", ASKED),
        ("test_lowest_versions.py", LOWEST_ASKED),
    )
    if variable not in os.environ
]
