"""Addresses in what files say, as they can be shown: without what could be a key."""

import re

ADDRESS = re.compile(r"(?:git\+)?[a-z][a-z0-9+.-]*://[^\s'\"]+", re.IGNORECASE)


def without_login(address: str) -> str:
    """Return an address without what could be a key in it."""
    head, slashes, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{head}{slashes}{authority.rpartition('@')[2]}{slash}{path}"


def without_logins(text: str) -> str:
    """Return a text, in all addresses of which user names and passwords are left out."""
    for address in ADDRESS.findall(text):
        text = text.replace(address, without_login(address))
    return text
