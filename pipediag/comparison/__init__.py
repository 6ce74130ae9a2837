"""Two versions held against one another: `compare(base, head)`, from sessions of each."""

from pipediag.comparison.comparing import compare
from pipediag.comparison.result import Comparison

__all__ = ["Comparison", "compare"]
