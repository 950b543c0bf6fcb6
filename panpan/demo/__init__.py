"""The demo: a small project with a real bug, and the cassette of a model that finds it; `panpan demo` plays it.

The model's words in `bug_fix.jsonl` were written by hand and then recorded, with the results of the real tools, by
`scripts/record_demo.py`.
"""
