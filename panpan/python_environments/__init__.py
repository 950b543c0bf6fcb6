"""Python environments: what is in them, what projects ask of them, and where packages for them come from.

Files are read, and nothing of them is run.
"""
