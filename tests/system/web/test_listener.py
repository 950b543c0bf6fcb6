import os
import socket
from pathlib import Path

import pytest

from panpan.system.web.filter_proxy import listening_user

OURS = os.geteuid() if Path("/proc/net/tcp").exists() else None
"""Return the system's view of a process of ours; nothing where it has none."""


def listening(address: str, port: int = 0) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.bind((address, port))
    listener.listen()
    return listener


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::"])
def test_listening_user_owns_the_port(address: str) -> None:
    with listening(address) as listener:
        assert listening_user(listener.getsockname()[1]) == OURS


def test_listening_user_of_a_free_port_is_none() -> None:
    with listening("127.0.0.1") as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert listening_user(client.getsockname()[1]) is None, "a connection is no listener"
    assert listening_user(port) is None


def test_listening_user_elsewhere_does_not_count() -> None:
    with listening("127.0.0.2") as listener:
        assert listening_user(listener.getsockname()[1]) is None
