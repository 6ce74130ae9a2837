"""Scripts that others wrote and published: where they come from, what is changed, what is true."""
