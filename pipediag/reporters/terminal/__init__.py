"""What `analyze`, `report` and `trace` print."""
