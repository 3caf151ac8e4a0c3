"""Reproductions of figures and tables of the papers, compared with the expected numbers.

- `apps.reproduce.command`: the command ``haptics reproduce``.
- `apps.reproduce.registry`: the reproductions by ID; one module each.
- `apps.reproduce.outcome`: the result of a reproduction: rows to compare and a picture to draw.
- `apps.reproduce.report`: the output files: picture, table, summary.
- `apps.reproduce.style`: the style of the pictures.
"""
