"""What the box of one command inherits so that its only network is panpan's proxy.

The rule: no socket of the machine goes in. The launcher in the box makes a listening socket on the box's own loopback
and hands it out; who connects to it inside is answered outside.
"""

from panpan.types.dataclass import dataclass

PROXY_PORT = 61_128
"""Port of the proxy on the box's loopback; above those that Linux gives out by itself."""


@dataclass(frozen=True, slots=True)
class ProxyEndpoint:
    """The way from one box to the proxy. Its descriptors are given to the child under the same numbers."""

    handover_fd: int
    """Where the launcher sends the listening socket; a unix socket, which the command itself does not get."""
    alive_fd: int
    """What the box keeps open until its last process has ended, so that this can be seen outside."""
    domains: tuple[str, ...]
    """The hosts that can be reached, as the settings name them; for those who tell the user."""

    @property
    def pass_fds(self) -> tuple[int, ...]:
        """What the child has to inherit."""
        return (self.handover_fd, self.alive_fd)
