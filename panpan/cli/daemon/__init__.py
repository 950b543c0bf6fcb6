"""`panpan daemon`: a process that has imported panpan, and becomes a run by a fork (ADR 28).

`client.py` is a start that asks for a run, `server.py` the daemon, `preload.py` what it has ready, and `run.py` what a
forked copy takes over from the start. `standing.py` reads what the kernel holds a process to. `command.py` is the
subcommand.
"""
