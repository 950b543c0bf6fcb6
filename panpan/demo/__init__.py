"""The demo: a small project with a real bug, and the tape of a model that finds it; `panpan demo` plays it."""
