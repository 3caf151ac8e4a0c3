"""Models of a joint's friction and load made of terms, selected by cross-validation."""
