"""Tables of a PDF, by the places of words on its pages."""
