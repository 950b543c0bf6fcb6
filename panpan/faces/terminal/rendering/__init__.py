"""Rendering of events and text as terminal rows: text with SGR sequences, never wider than asked for."""
