"""Benchmarks of whole things without a clock: ticks of the loop, sessions, sweeps, simulated people with their fits."""
