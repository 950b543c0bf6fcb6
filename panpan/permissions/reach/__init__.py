"""Places on disk that a call reaches: those that it names, and those that it comes to without naming them."""
