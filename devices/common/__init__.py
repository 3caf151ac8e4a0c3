"""Shared modules of drivers.

- `driver`: base classes of drivers with a port; `exchange`: drivers whose thread exchanges commands and samples;
  `kernels`: their computation per tick.
- `latch`: newest values, shared with threads; `guard`, `guardian`: watchdog process; `log`: log of commands.
- `settings`, `velocity`, `friction`, `compensation`, `linkage`: settings and computations of several devices.
- `bus`: access to USB and serial devices; `parameter_keys`: keys of parameter files.
"""
