"""Where the file itself is that a code host shows on a page around it."""

import re

_FORMS = (
    (re.compile(r"https://github\.com/([^/]+/[^/]+)/blob/([^?#]+)"), r"https://raw.githubusercontent.com/\1/\2"),
    (re.compile(r"(https://gitlab\.com/[^?#]+)/-/blob/([^?#]+)"), r"\1/-/raw/\2"),
    (re.compile(r"(https://huggingface\.co/[^?#]+)/blob/([^?#]+)"), r"\1/raw/\2"),
)


def raw_form(url: str) -> str | None:
    """Return the address of the file alone; None where `url` is no page around one."""
    for page, raw in _FORMS:
        if found := page.match(url):
            return found.expand(raw)
    return None
