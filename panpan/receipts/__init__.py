"""Receipts: records of commands that ended, with what they read, wrote and tested."""
