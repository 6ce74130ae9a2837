"""Pipediag from Python: sessions that are loaded, and analyses of what a program has at hand."""
