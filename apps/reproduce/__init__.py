"""The papers' figures and tables: each computed anew, drawn, and its numbers set beside the expected ones.

- `apps.reproduce.command`: the command ``haptics reproduce``.
- `apps.reproduce.registry`: the reproductions by ID; one module each.
- `apps.reproduce.outcome`: what a reproduction returns: rows to compare and a picture to draw.
- `apps.reproduce.report`: the files it leaves: picture, table, summary.
- `apps.reproduce.style`: how the pictures look.
"""
