"""Measurements: columns from files and recordings, and velocities and accelerations from positions."""
