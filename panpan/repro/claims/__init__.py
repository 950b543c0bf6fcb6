"""Claims: what a paper says, and how a number comes about."""
