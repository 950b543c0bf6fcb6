"""The interactive terminal: input below, the conversation above it in the native scrollback."""
