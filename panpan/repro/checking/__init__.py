"""Checking: run the commands of claims, find their numbers and judge them."""
