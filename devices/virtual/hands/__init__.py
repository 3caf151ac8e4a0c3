"""Virtual hands: what moves a device that nobody holds. `registry` has them by name."""
