"""The parent: it starts the child, watches it, asks it, and reports."""
