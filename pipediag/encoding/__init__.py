"""Encoders of text that others wrote, one for each medium that pipediag writes."""
