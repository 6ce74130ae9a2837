"""Rules on the input pipeline."""
