"""The input pipeline as the profile saw it, iterator by iterator."""
