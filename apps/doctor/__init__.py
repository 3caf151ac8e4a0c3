"""What this machine lacks for friction at 1 kHz, and the commands that fix it.

One small function per check; `apps.doctor.registry` has them all. Where a check looks is a `Machine`, so that tests can
build one from files; what could crash or lasts is done in a Python of its own (`apps.doctor.child`).
"""
