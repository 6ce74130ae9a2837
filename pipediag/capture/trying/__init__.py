"""A measured loop is held, and what the parent asks for is tried in it."""
