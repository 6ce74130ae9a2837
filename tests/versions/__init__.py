"""Samples under other versions of Python, TensorFlow and Keras: `make test-versions`."""
