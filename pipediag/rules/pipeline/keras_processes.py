"""What Keras needs to read a PyDataset by processes."""

from __future__ import annotations

WHAT_PROCESSES_NEED = (
    "Keras forks them on Linux, so `__getitem__` must not call TensorFlow; where they are spawned "
    "the dataset must pickle, and the script needs `if __name__ == '__main__':`"
)
