"""Dialogs ask the user something and take the keys meanwhile."""
