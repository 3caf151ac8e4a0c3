"""Screen of the experimenter: a Qt window in a separate process."""
