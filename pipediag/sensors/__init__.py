"""Counters of a process and of the machine, read from outside."""
