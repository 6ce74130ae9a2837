"""Comparison of two versions by sessions of each."""
