"""Times embedding tables by themselves, in a process that imports TensorFlow as a script would."""
