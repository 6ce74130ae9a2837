"""Rules on embedding tables: ids that are not what was meant, and work on all rows for a few."""
