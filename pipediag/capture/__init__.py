"""Inside the user's process: the only room that touches TensorFlow and Keras."""

from pipediag.capture.capture import Capture
from pipediag.capture.guard import StopScript

__all__ = ["Capture", "StopScript"]
