"""Measurements of what pipediag costs and how often it is right."""
