"""Shared modules of drivers: velocity, friction compensation, linkages, logs and latches."""
