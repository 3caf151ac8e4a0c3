"""3D Systems Touch and SensAble Phantom devices through the manufacturer's library: forces in, positions out.

The library, ``libHD`` of OpenHaptics 3.0, 3.4 or 3.5, is closed, and the user installs it. Friction is rendered in a
plane; a spring and a damper hold the third axis.

**Guarantees about the force.** The manufacturer's servo loop calls a compiled callback 1000 times per second. The
callback itself sends a zero force when no command arrives within the watchdog's time, and after every error, when it
also switches the motors off. At every end of a run the driver waits until the device has accepted a zero force and the
motors are off. When the process is killed or stopped, frames stop reaching the device: only the device determines
how long the last force lasts, which its manufacturer does not state. No second process can help, because the library
opens a device once. This could not be tested: the driver has run with emulated devices only.

- `hdapi`: declarations of the library for ctypes, and its error messages.
- `callback`: the compiled callback.
- `link`: scheduler, opening, calibration, and the end.
- `device`: settings, computation per tick, and the device driver.
"""
