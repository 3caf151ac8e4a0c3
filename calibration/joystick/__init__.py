"""Calibration of a force-feedback stick: conversion of counts to metres and of newtons to levels.

A person moves the handle, observes it and answers questions, while the program reads the counts. No assumption is made
about the orientation of the axes in the plane of the handle's motion or about the directions of the motors' forces.

- `calibration.joystick.person`: interface of the person.
- `calibration.joystick.person`: known properties of the stick.
- `calibration.joystick.stick`: access to the stick in counts and levels.
- `calibration.joystick.stick`, `axes`: metres per count from known positions of the handle.
- `calibration.joystick.pushes`, `response`: small pushes, and identification of the motors from the motions.
- `calibration.joystick.forces`: duration of a force that is not renewed.
- `calibration.joystick.forces`: scale of the force, from a weight that the stick carries.
- `calibration.joystick.procedure`: complete procedure, from the first step to the parameters.
- `calibration.joystick.emulated`: simulated person for emulated sticks.
"""
