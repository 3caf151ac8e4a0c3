"""Models of a joint's friction and load composed of terms, selected by cross-validation."""
