"""How a stick is found and reached: libusb or hidraw, and how it is given back to the kernel."""
