"""The command ``haptics verify``: independent verification of a recording.

The checks share no code with the elements, laws and envelope that made the recording. Equations, rules and constants
are implemented a second time, from the papers and the documentation. No simulation is repeated: each equation that a
tick has solved is evaluated with the recorded values, and its *residual* is compared with a bound on the rounding
errors (`apps.verify.findings`).

`recorded` reads the recording. `laws`, `models` and `classic` contain the equations, which `contact` evaluates at the
recorded ticks; `scenes`, `walls` and `motion` do the same for scenes, walls and prescribed motions. `envelope` and
`energy` check the rules of the safety envelope, whose state is reconstructed. `description` and `certificate` check the
metadata and the times.
"""
