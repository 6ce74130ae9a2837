"""TensorFlow's iterators, tf.functions, variables and runtime."""
