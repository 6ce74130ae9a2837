"""What the profile shows: devices, their gaps, clocks."""
