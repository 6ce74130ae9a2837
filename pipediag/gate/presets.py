"""Sets of limits to begin with; each value can be set anew beside the preset's name."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "recommended": {
        "max-input-wait-percent": 20.0,
        "max-overhead-percent": 30.0,
        "max-confirmed-speedup-left": 1.2,
    },
    "strict": {
        "max-input-wait-percent": 5.0,
        "max-overhead-percent": 15.0,
        "max-confirmed-speedup-left": 1.05,
        "max-run-percent": {"epoch-start": 10.0, "evaluation": 25.0},
        "fail-on": "warn",
    },
}
"""XProf's limits for input wait are 5 and 20 % of the step. The others are own choices. Compiling
and starting are limited by none: in a short run made for a gate they are most of it."""


def with_preset(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """The table with the preset's values where it has none of its own, within tables of it too."""
    merged = {**PRESETS[name], **table}
    for key, value in PRESETS[name].items():
        if isinstance(value, dict) and isinstance(table.get(key), dict):
            merged[key] = {**value, **table[key]}
    return merged
