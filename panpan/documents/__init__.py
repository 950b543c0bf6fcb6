"""Notebooks, PDFs and pictures, as the model reads and edits them."""
