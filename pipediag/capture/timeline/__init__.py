"""Where the script's time goes, written down as it passes."""
