"""Comparison of two versions by sessions of each: `compare(base, head)`."""

from pipediag.comparison.compare import compare
from pipediag.comparison.result import Comparison

__all__ = ["Comparison", "compare"]
