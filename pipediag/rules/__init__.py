"""Rules: functions of a session that say what slows training and what to change, by topic."""
