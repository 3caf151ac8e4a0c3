"""Offline benchmarks of the whole loop, sessions, sweeps, and simulated participants with their fits."""
