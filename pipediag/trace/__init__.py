"""Profiles of TensorFlow, JAX and PyTorch: columns of events, and what those say about a step.

The names here serve modules that must not import numpy.
"""

STEP_MARKER = "pipediag_step"
"""Name of the event that spans one step on the training thread; its stat `step_num` counts."""

START_UP = "start_up"
"""Statistic of a marker whose step includes a new function's first call, and is left out."""

GAP_FLOOR_NS = 5_000
"""Shorter gaps are noise, which is only added up: back-to-back launches on one stream lie 1 to 5 us
apart."""

PYTHON_FRAME = "$"
"""TensorFlow's Python tracer begins the names of its events with it."""

ON_TPU = (
    "TPUs ran this profile, and pipediag does not read what they did: XProf does. Steps and waits "
    "for input are the host's."
)
"""Warning of a profile's summary."""
