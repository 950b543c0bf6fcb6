"""Attempts on the workers of a Dask scheduler: on this machine, by ssh, and in jobs of Slurm."""
