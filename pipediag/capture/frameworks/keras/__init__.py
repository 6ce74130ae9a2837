"""Keras 2 and 3, as `keras` and `tf_keras`: its fits, models and training functions."""
