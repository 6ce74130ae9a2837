"""Rules on the parts of a run that are no steps."""
