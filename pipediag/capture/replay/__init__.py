"""Builds the recorded pipeline again inside the user's process, with changes."""
