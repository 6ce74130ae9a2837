"""Measures recommended edits against the pipeline as written, and says what each of them buys."""
