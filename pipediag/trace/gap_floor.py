"""Which gaps of a device are looked at."""

GAP_FLOOR_NS = 5_000
"""Shorter gaps are noise: back-to-back launches on one stream lie 1 to 5 us apart."""
