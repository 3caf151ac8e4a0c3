"""Rendering of one tick: from the sample through program and envelope to the command.

`haptics.rendering.envelope` contains the limits between program and device, `passivity` the energy observer and
passivity controller, `motion` the program that follows a reference, and `kernels` the tick itself.
"""
