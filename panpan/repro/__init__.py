"""Reproductions: claims of a paper, runs that check them, and a kit that others can check."""
