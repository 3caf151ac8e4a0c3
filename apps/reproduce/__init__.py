"""Reproductions of figures and tables of the papers, compared with the expected numbers.

`apps.reproduce.command` lists them, `apps.reproduce.outcome` is the result of one: rows to compare and a picture to
draw, and `apps.reproduce.report` writes pictures, tables and the summary.
"""
