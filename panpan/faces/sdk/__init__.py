"""The face for programs on the Claude Agent SDK: its control protocol over standard input and output."""
