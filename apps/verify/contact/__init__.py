"""Laws of friction and the discrete equations of the elements, written down from the papers a second time.

`laws` has the forces that a law allows, `text_law` those of a law that is a text, `models` and `classic` the equations
that the rows of an element satisfy, `check` puts them to recorded ticks.
"""
