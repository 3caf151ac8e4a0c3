"""Emulated arm: a drive on an emulated bus and a force sensor at real sockets or a pseudo-terminal.

Both belong to one arm, which is moved by the motors and held by a hand (`plant`). They run in one process (`child`), so
that drive and sensor survive their driver. The parts are `devices.emulators.odrive`, `devices.emulators.rdt` and
`devices.emulators.optoforce`; `sensors` selects the sensor, `board` combines arm and drive, `gains` contains the gains
of the drive, `faults` the faults.
"""
