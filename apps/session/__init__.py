"""Sessions: one device, one element, one hand, and the recorded results of the run."""
