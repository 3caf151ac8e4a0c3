"""Models of a joint's friction and load made of terms, chosen by what they predict."""
