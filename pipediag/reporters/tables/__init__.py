"""The CSV files beside a session."""
