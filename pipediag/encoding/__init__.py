"""How text that others wrote leaves pipediag: one module for each medium that it is written to.

A session or a profile can come from a stranger. What is text in it must stay text, wherever it is
shown: no command to a terminal or to a CI runner, no formula, no markup.
"""
