"""An emulated arm: a drive on an emulated bus and a force sensor at real sockets or a pseudo-terminal.

Both belong to one arm, which the motors move and a hand holds (`plant`). All of it is in one process (`child`), so that
drive and sensor go on living when their driver dies. The parts are `devices.emulators.odrive`, `devices.emulators.rdt`
and `devices.emulators.optoforce`; `sensors` chooses, `board` brings arm and drive together, `gains` are those of the
drive, `faults` has what goes wrong.
"""
