"""Calibration of a force-feedback stick: conversion of counts to metres and of newtons to levels.

A person moves the handle, observes it and answers questions, while the program reads the counts. No assumption is made
about the orientation of the axes in the plane of the handle's motion or about the directions of the motors' forces.

- `calibration.joystick.person`: the person, known properties of the stick, and a simulated person for emulated sticks.
- `calibration.joystick.stick`: counts and levels of the stick; metres per count from known positions of the handle.
- `calibration.joystick.forces`: motors from pushes, duration of a force that is not renewed, scale from a weight.
- `calibration.joystick.procedure`: complete procedure, from the first step to the parameters.
"""
