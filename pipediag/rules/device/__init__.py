"""Rules on what a device does, and waits for."""
