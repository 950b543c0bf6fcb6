"""The tools: one a file, by family. A tool knows files and processes, and neither the model nor a face."""
