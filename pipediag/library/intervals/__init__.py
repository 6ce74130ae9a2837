"""A long training that is measured every so often, with nothing of ours in it between two times."""
