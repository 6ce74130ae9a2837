"""The step: how long it takes, what it waits for, what it is made of."""
