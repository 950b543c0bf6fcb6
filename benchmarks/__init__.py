"""Benchmarks: the figures of docs/benchmarks.md, measured on the real program; `python -m benchmarks` runs them all.

The rule: whatever is about the process is measured on the installed command and a model server in another process,
seen from outside. Nothing here runs inside a test.
"""
