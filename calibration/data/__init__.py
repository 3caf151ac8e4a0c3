"""Recordings of joints from files, and velocities and accelerations from positions."""
