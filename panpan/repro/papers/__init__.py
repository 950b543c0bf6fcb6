"""Papers: find tables and numbers in them, and let a person confirm."""
