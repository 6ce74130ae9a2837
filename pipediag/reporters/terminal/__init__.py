"""Output of `analyze`, `show` and `trace` on the terminal."""
