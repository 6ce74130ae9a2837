"""The report that is read in a browser."""
