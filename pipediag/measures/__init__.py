"""Pure functions from what was recorded to what the session says."""
