"""Profiles that others have recorded: `pipediag trace`."""
