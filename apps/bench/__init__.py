"""Benchmarks of the parts of the project, each with a reference that is measured in the same run.

- `apps.bench.command`: the command ``haptics bench``.
- `apps.bench.registry`: the benchmarks by name; one module each.
- `apps.bench.options`: the options of the benchmarks.
- `apps.bench.kernel`, `apps.bench.network`, `apps.bench.quest`, `apps.bench.live.servo`, `apps.bench.live.soak`:
  benchmarks.
- `apps.bench.simulators`: other simulators compared with model A, part of ``kernel``.
- `apps.bench.live.servo_slices`, `servo_report`: the two candidates of ``servo``, and its report.
- `apps.bench.live.cyclictest`: the reference of ``servo``.
- `apps.bench.live.lateness`: wake-up latency: figures and ratios.
- `apps.bench.live.parallel_view`: the live view running in parallel with both candidates.
- `apps.bench.live.memory`: memory monitoring of ``soak``.
- `apps.bench.stop`: deferred handling of Ctrl-C.
- `apps.bench.outcome`: the result of a benchmark, and its tables.
- `apps.bench.slices`: time measurement: interleaved slices of all candidates, medians, spread.
- `apps.bench.loop`: the measured loop.
- `apps.bench.reference`: the same loops in C, compiled at run time.
- `apps.bench.workload`: the measured elements and their input.
"""
