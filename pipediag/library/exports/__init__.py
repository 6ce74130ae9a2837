"""What a session says in numbers, for the tools in which people watch their trainings."""
