"""Force-feedback joysticks that implement the USB HID class Physical Interface Device (PID).

- `hid.usages`: HID usages by name. `hid.descriptor`: report descriptors and their parser. `hid.report`: encoding and
  decoding of reports. `families`: device quirks that no descriptor states.
- `usb.libusb`, `usb.hidraw`: transports. `usb.transport`: their errors. `usb.finding`: discovery of connected sticks.
  `usb.reattaching`: return of the interface to the kernel's driver.
- `reports`: input and output reports of a stick. `session`: its set-up. `streaming`: input and output threads.
- `parameters`: parameter file that calibration writes. `trial`: test push after a change of firmware.
- `kernels`, `device`: computation per tick; settings, opening and the device driver.
"""
