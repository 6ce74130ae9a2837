"""The input pipeline as the user wrote it: its calls, functions and source files."""
