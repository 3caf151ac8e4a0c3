"""The native protocol of ODrives with firmware 0.5: packets to numbered endpoints, each with its answer.

- `wire`: packets as bytes. `line`: many requests under way at once, each answer matched to its request.
- `endpoints`: what the drive says it can do, kept on disk. `drive`: properties and functions by name.
"""
