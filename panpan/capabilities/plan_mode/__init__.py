"""Plan mode: the plan's file, the tools that enter and leave it, and what is denied meanwhile."""
