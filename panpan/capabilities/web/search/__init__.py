"""Search engines: one a file, and what chooses and asks them."""
