"""`panpan serve`: sessions over HTTP for programs and for the page in the browser.

`guard.py` decides who comes in, `routes.py` says which operation an address is, and `event_stream.py` sends events.
"""
