"""The demo: a small project with a real bug, and the tape of a model that finds it. Data only; `panpan demo` plays it."""
