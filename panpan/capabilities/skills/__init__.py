"""Skills, and slash commands that users write. See docs/skills.md."""
