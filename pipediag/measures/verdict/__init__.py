"""What limits the run, how sure that is, and the words for it."""
