"""A session: one device, one element, one hand on it, and everything that is known about the run afterwards."""
