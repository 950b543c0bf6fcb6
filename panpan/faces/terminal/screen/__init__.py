"""The screen: its canvas, its windows, and what is painted again."""
