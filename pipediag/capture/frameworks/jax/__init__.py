"""JAX, which Keras trains with for the script."""
