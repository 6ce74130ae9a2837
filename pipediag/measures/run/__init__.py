"""The ledger: all of the run's time."""
