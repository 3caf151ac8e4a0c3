"""Classic friction models from the literature with the interface of elements A to D; see `models`."""
