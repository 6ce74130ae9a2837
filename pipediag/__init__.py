"""Pipediag says why TensorFlow training is slow, from a run of your own script."""

__version__ = "0.1.0"
