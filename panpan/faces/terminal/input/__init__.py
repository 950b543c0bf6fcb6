"""The input box: text, completion, pastes, history and keys."""
