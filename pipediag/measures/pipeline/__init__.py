"""The input pipeline: what its operations and iterators cost."""
