"""What a calibration has found, and its file: one grammar of keys, one reader, one writer."""
