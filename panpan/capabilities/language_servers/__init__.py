"""Language servers: which there are, their processes, what they are asked, and the errors that an edit brings."""
