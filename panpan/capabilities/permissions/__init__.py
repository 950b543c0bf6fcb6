"""The gate in the loop, and questions about the sandbox."""
