"""What belongs to one framework: where its hooks go, and what is known of its objects."""
