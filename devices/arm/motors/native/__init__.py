"""Native protocol of ODrives with firmware 0.5: packets to numbered endpoints, each with its reply.

- `wire`: packets as bytes. `line`: pipelined requests, each reply matched to its request.
- `endpoints`: the drive's table of endpoints, cached on disk. `drive`: properties and functions by name.
"""
