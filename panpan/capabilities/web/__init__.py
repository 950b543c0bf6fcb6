"""Tools of the web: search and fetch; all text that comes from there is data.

`WebPages` is the one way to a page, for the session and its subagents. Each address, those of redirects too, passes the
lists of the settings, the check for the same site, rules that speak of the new address, and robots.txt, and waits for
the host's pause. What came is HTML, text, PDF, a picture, or nothing readable. It is made text in a process of its own,
since regular expressions and parsers can hang or fill the memory. Scripts, challenges, refusals and log-ins are tried
in the browser. A prompt goes to the small model (`PageAnswers`).

A search engine opens nothing: it makes a request of a query and results of an answer, and `WebSearcher` sends the one
and bounds the other. docs/security.md says what all of this is held to.
"""
