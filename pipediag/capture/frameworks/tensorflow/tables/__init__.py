"""The embedding tables of a traced step: how its graph reads and writes them, and by which ids."""
