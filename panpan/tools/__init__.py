"""The tools: one a file, by family. A tool knows the files and processes it works on, and neither the model nor a face."""
