"""Frameworks: where each is hooked into, and what its objects tell."""
