"""Benchmarks: the figures of docs/benchmarks.md, measured on the real program; `python -m benchmarks` runs them all.

The rule: figures about the process are measured from outside, on the installed command and a model server in another
process. Nothing here runs inside a test.
"""
