"""Which addresses belong to the site that somebody allowed: the same host, with and without `www.` and TLS.

The rule: whoever allowed a host allowed no other, wherever that sends on to.
"""

from panpan.system.web.url_guard import PlainUrl

_USUAL_PORTS = {"http": 80, "https": 443}


def is_same_site(allowed: PlainUrl, asked: PlainUrl) -> bool:
    """Return whether `asked` is of the site of `allowed`: the same name and port, or both on the usual ones."""
    is_same_port = allowed.port == asked.port or (_is_usual(allowed) and _is_usual(asked))
    return is_same_port and _bare(allowed.host) == _bare(asked.host)


def _is_usual(plain: PlainUrl) -> bool:
    return plain.port == _USUAL_PORTS[plain.scheme]


def _bare(host: str) -> str:
    bare = host.removeprefix("www.")
    return bare if "." in bare else host
