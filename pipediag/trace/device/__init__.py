"""What each device ran, when it was idle, and why."""
