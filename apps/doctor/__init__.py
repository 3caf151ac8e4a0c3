"""Diagnosis of this machine for friction rendering at 1 kHz, with the commands that fix problems.

There is one small function per check; `apps.doctor.registry` lists all. A check accesses the system through a
`Machine`, which tests can build from files. Operations that may crash or have lasting effects run in a separate Python
process (`apps.doctor.child`).
"""
