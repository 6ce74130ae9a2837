"""Frameworks: where each is hooked into, and what its objects tell."""

from collections.abc import Callable
from typing import Any

Hook = Callable[[Any], None]
"""Hooks into a module that has just been imported."""
