"""A loop that trains is measured: window by window, between its own steps."""
