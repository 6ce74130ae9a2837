"""The loops of a run, and where the time of one goes."""
