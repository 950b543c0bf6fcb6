"""The screen: its windows, its drawing, and programs that take it over."""
