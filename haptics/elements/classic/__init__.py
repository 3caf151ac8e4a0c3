"""Classic friction models from the literature, behind the same interface as the elements A to D; see `models`."""
