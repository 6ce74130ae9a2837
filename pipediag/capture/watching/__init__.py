"""Steps of the script's loops: what begins one, what belongs to it, and which loop trains."""
