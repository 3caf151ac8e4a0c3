"""Benchmarks of the running servo: lateness beside cyclictest, beside a view, for hours."""
