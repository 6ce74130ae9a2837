"""Where all of the run's time goes."""
