"""Telling the steps of a profile apart, by whatever shows them."""
