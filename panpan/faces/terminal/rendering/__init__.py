"""From what a session says to lines for the terminal: text with SGR sequences in it, never wider than asked for."""
