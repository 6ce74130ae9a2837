"""Which framework trained, by the names of what its host did."""

from __future__ import annotations

from pipediag.trace.events import TraceEvents
from pipediag.vocabulary import Framework

_SIGNS: tuple[tuple[Framework, tuple[str, ...]], ...] = (
    ("pytorch", ("aten::", "ProfilerStep#")),
    # Keras on JAX may take its batches from tf.data: then both have left events.
    ("jax", ("PjitFunction(", "PJRT_LoadedExecutable_Execute")),
)


def framework_of(events: TraceEvents) -> Framework:
    """The framework whose calls the host's threads made; TensorFlow where none shows."""
    for framework, prefixes in _SIGNS:
        for line in events.host_lines:
            if any(name.startswith(prefixes) for name in line.used_names.values()):
                return framework
    return "tensorflow"
