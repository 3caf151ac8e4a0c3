"""The command ``haptics verify``: checks a recording by the equations, and by what it says of itself.

It shares no code with the elements, the laws and the envelope that made the recording: equations, rules and constants
are written down here a second time, from the papers and the documentation. Nothing is stepped again. Each equation that
a tick has solved is evaluated at what was recorded, and what is left over, its *residual*, is compared with what
rounding can leave (`apps.verify.findings`).

`recorded` reads, `contact` has laws and elements, `envelope` the samples, the command and the energy; `clock`,
`description` and `certificate` have what is said about the rows.
"""
