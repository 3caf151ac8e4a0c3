"""ODrive on USB.

- `finding`: discovery and opening of a drive. `pipes`: the two pipes of an interface, one transfer at a time in each.
- `queued`: pipes with many transfers in flight, by a queue; `libusb_queue` is the queue of libusb.
- `serial_port`: pipes of the drive's serial port; `text`: lines of text through them.
"""
