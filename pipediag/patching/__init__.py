"""From an edit of a session to a change of the user's source; runs in the parent alone."""
