"""The only code that is dangerous: one function per danger, and nothing above here opens a path or a process another way."""
