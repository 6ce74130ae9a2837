"""Sessions of a script over time, in one file: what changed, and with which commit."""
