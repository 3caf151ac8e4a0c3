"""The tests mirror the tree: tests/haptics for haptics, and so on."""
