"""Rules on embedding tables: ids that are not what was meant."""
