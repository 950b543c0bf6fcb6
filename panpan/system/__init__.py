"""The only code that is dangerous: one function per danger, and nothing above opens a path or process another way."""
