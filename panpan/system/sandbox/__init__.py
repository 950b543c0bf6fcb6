"""The sandbox: what the operating system does not let a command do, whatever it was allowed to try."""
