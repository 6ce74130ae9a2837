"""Places in the script that consume batches, and where their time goes."""
