"""Emulated libraries of makers, written in C: exactly their symbols, in front of a device in a separate process.

A driver loads such a library like the real one, by its path. The library (`host.c` and one file per maker) runs in the
process of the driver, and exchanges packets with the device (`far_end.c`), which runs in a child process
(`devices.emulators.child`) without the interpreter. The device has the moving handle, the maker's watchdog and a record
of the forces of the motors. It remains when the process of the driver is killed or stopped. `compiler` compiles the
sources on first use; `far_end` starts devices, switches their faults and reads their record.
"""
