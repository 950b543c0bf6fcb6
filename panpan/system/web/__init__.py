"""The web: the one way to it for tools, and the proxies through which other programs reach it. See docs/adr/0014.

`GuardedClient` asks for one address: it reads it with the URL guard, has `Connector` look the host up, check every
address and dial what was checked, and takes each redirect through the same steps. Programs that open connections
themselves, the browser and boxed commands, get a proxy on the loopback that does the same; both proxies are a
`find_route` before one `ProxyConnection`. All use h11 and read a host once, since a larger client would read it
again in its own way. A connection carries one exchange, so nothing can be taken for the answer to another.

`WebNetwork` (look up, dial, certificates) is what `open_session(network=…)` replaces in tests. "Whatever a server
answers, nothing that is not public is dialled" is a property over such a network.
"""
