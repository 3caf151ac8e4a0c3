"""Benchmarks: how fast the parts are, always beside a reference that is measured in the same run.

- `apps.bench.command`: the command ``haptics bench``.
- `apps.bench.registry`: the benchmarks by name; one module each.
- `apps.bench.options`: the options that are passed on to them.
- `apps.bench.kernel`, `apps.bench.network`, `apps.bench.quest`, `apps.bench.live.servo`, `apps.bench.live.soak`: the
  benchmarks.
- `apps.bench.simulators`: other simulators beside model A, part of ``kernel``.
- `apps.bench.live.servo_slices`, `servo_report`: the two candidates of ``servo``, and what is said of them.
- `apps.bench.live.cyclictest`: the reference of ``servo``.
- `apps.bench.live.lateness`: how late wake-ups are, in figures and ratios.
- `apps.bench.live.beside`: the live view at work beside both candidates.
- `apps.bench.live.memory`: memory watched during a ``soak``.
- `apps.bench.stop`: Ctrl-C while other processes run.
- `apps.bench.outcome`: what a benchmark returns, and how its tables are written.
- `apps.bench.slices`: how time is measured: slices of all candidates in turn, medians, spread.
- `apps.bench.loop`: the loop that is measured.
- `apps.bench.reference`: the same loops in C, compiled on the spot.
- `apps.bench.workload`: which elements are measured, and the motion they are given.
"""
