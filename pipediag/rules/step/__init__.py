"""Rules on the step itself: what the host does for it, its batch and its model."""
