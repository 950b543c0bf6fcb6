"""The input: completion, pastes, history, the editor, and the keys that make a new line."""
