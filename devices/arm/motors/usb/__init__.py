"""An ODrive on USB.

- `finding`: which drive is meant, and opening it. `pipes`: an interface's two pipes, one transfer at a time in each.
- `queued`: the same with many transfers under way at once, by a queue: libusb's own is `libusb_queue`.
- `serial_port`: the pipes of its serial port, `text`: lines through them.
"""
