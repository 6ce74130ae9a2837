"""Limits on sessions, and comparisons with a baseline, as checks that passed or failed."""
