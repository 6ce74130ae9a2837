"""Edits that no rule calls for, tried where rules are silent."""
