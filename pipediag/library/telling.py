"""What a measurement within a program has to say, beside what that program prints."""

from __future__ import annotations

import sys

from pipediag.encoding.terminal import one_line


def tell(sentence: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"{one_line(f'pipediag: {sentence}')}\n")
    sys.stderr.flush()
