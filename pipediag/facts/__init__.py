"""Questions about a session that several ask; each is answered here, once."""
