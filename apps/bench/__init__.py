"""Benchmarks: how fast the parts are, always beside a reference that is measured in the same run.

- `apps.bench.command`: the command ``haptics bench``.
- `apps.bench.registry`: the benchmarks by name; one module each.
- `apps.bench.kernel`, `apps.bench.network`: the benchmarks.
- `apps.bench.simulators`: other simulators beside model A, part of ``kernel``.
- `apps.bench.outcome`: what a benchmark returns, and how its tables are written.
- `apps.bench.slices`: how time is measured: slices of all candidates in turn, medians, spread.
- `apps.bench.loop`: the loop that is measured.
- `apps.bench.reference`: the same loops in C, compiled on the spot.
- `apps.bench.workload`: which elements are measured, and the motion they are given.
"""
