"""Which kinds of subagents there are: files and `--agents` become definitions."""
