"""Force-feedback joysticks that implement the USB HID class Physical Interface Device (PID).

- `usages`: HID usages by name. `items`, `layout`, `descriptor`: parser of report descriptors. `report`: encoding and
  decoding of reports. `families`: device quirks that no descriptor states.
- `transport`: interface of the transports `usb_transport` (libusb, with `listing`) and `hidraw`. `finding`:
  discovery of connected sticks; `remedies`: error messages with instructions; `reattaching`: return of the interface to
  the kernel's driver.
- `session`: set-up of a stick. `forces`: selection of the reports to send. `streaming`: input and output threads.
- `parameters`, `parameter_tables`: parameter file that calibration writes. `settings`: user settings.
- `trial`: test push after a change of firmware.
- `opening`, `kernels`, `device`: the device driver and its computation per tick.
"""
