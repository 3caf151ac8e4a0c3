"""Discovery of sticks, transports over libusb and hidraw, and return of the interface to the kernel."""
