"""The embedding tables of a step that was traced: how its graph reads and writes them, which ids."""
