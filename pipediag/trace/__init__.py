"""Reading profiles: XPlane files to columns of events, and what those events say of a step."""
