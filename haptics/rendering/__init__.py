"""Rendering of one tick: from the sample through program and envelope to the command.

Read `kernels` first: `render` is the complete tick. `envelope` has the limits between program and device, `passivity`
the energy observer and the passivity controller, `walls` the contact with walls, `programs` the kinds of programs
(elements, elements on scenes, motions along a reference) and their entries in a recording. `rendering` couples a
program to a device.
"""
