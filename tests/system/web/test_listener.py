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
def test_it_is_told_whose_process_listens(address: str) -> None:
    with listening(address) as listener:
        assert listening_user(listener.getsockname()[1]) == OURS


def test_where_nobody_listens_nobody_is_told() -> None:
    with listening("127.0.0.1") as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert listening_user(client.getsockname()[1]) is None, "a connection is no listener"
    assert listening_user(port) is None


def test_who_listens_elsewhere_is_somebody_else() -> None:
    with listening("127.0.0.2") as listener:
        assert listening_user(listener.getsockname()[1]) is None
