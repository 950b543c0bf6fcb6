"""Receipts: what the commands of a session have shown, and if that still holds."""
