"""The process in which the script runs: how it starts, ends and leaves, as natively as can be."""
