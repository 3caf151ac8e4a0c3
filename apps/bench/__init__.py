"""Benchmarks of the parts of the project, each with a reference that is measured in the same run.

`apps.bench.command` lists the benchmarks and their options, `apps.bench.workload` contains the measured loops and their
counterparts in C, and measures times in interleaved slices.
"""
