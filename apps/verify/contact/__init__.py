"""Independent implementation of the friction laws and element equations, from the papers.

`laws` contains the force sets of the laws and `text_law` the laws given as text. `models` and the modules of the
classic models contain the equations of the elements. `check` evaluates them at the recorded ticks.
"""
