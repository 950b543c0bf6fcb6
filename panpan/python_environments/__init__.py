"""Python environments: their packages, what projects ask of them, and package indexes.

Files are read, and nothing of them is run.
"""
