"""Measures recommended edits against the pipeline as written."""
