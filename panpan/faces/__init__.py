"""Faces: each reads the events of a session and nothing else."""
