"""EnvDoctor: the lowest layer of a Python environment that is broken."""
