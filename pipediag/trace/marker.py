"""The name that ties the capture's step markers to the trace's steps.

A module of its own, as the capture must not bring numpy into the user's process.
"""

STEP_MARKER = "pipediag_step"
"""Name of the event that spans one step on the training thread; its stat `step_num` counts."""

START_UP = "start_up"
"""The stat of a marker whose step pays for a new function's first call, and is left out."""
