"""The emulated stick behind real libusb and behind the real Linux kernel."""
