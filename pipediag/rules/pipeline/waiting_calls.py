"""How many calls are worth having in flight where each of them mostly waits."""

from __future__ import annotations

WAITING_CALLS = 16
"""Own choice. A waiting call keeps its thread, and tf.data's own pool has one a CPU: with it, eight
generators on two CPUs gave 2.1 times the examples, and with 16 threads 4.5 times."""
