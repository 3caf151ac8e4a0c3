"""Force-feedback sticks of the USB HID PID class, emulated byte by byte, with a simulated handle.

    backend = emulated_stick("openffboard", seed=1)
    device = usb.core.find(backend=backend)

- `profiles`: the available sticks, which are in ``sticks.toml``; the ``.hex`` files are their report descriptors.
- `machine`: effects and the state machine of the PID class.
- `firmware`: descriptors, requests and reports, and the handle with motors and converters.
- `stick`: the stick on the bus, and the backend for pyusb.
"""
