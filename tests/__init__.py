"""Tests, in the same structure as the packages: tests/haptics for haptics, and so on."""
