"""One tick of rendering: sample in, program, envelope, command out.

`haptics.rendering.envelope` has the limits between program and device, `passivity` the ledger of energy and its
control, `motion` the program that follows a reference, `kernels` the tick itself.
"""
