"""What a person runs: sessions, the live view, replay and the command line.

The top floor: it may use everything below and nothing below uses it.
"""
