"""Encoders through which text that others wrote leaves pipediag, one for each medium."""
