"""The certificate of a campaign's scheduler, and the extra that a cluster needs.

The rule: a Dask scheduler runs what anybody sends who reaches its port. So whatever panpan starts speaks TLS, and takes
only those who hold the certificate of this start. It lies in the panpan home, which the user alone can read, and which
no sandbox shows: the model's commands could leave their sandbox with it.
"""

import datetime
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from panpan.errors import ConfigError, OutputError, ToolError
from panpan.system.environment import how_to_install
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.folder_tree import make_private_folder

if TYPE_CHECKING:
    from distributed.security import Security

PACKAGES = ("distributed>=2026.8,<2027", "dask-jobqueue>=0.9,<0.10", "cryptography>=46,<51")
"""Libraries of a cluster, as in pyproject.toml."""

_VALID_DAYS = 400


def require_packages(find: Callable[[str], object] = find_spec) -> None:
    """Check that the extra `cluster` is installed.

    Args:
        find: Returns None for a module that is not there.

    Raises:
        ConfigError: It is not.
    """
    modules = [package.partition(">")[0].replace("-", "_") for package in PACKAGES]
    if any(find(module) is None for module in modules):
        raise ConfigError(f"a cluster needs libraries; install them: {how_to_install(*PACKAGES)}")


def make_certificate(folder: Path) -> None:
    """Write a new certificate and its key into a private folder; those of an earlier start count no more.

    Raises:
        OutputError: They cannot be written.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "panpan campaign")])
    now = datetime.datetime.now(tz=datetime.UTC)
    # valid since yesterday, because the clock of a worker may be wrong
    begin, end = now - datetime.timedelta(days=1), now + datetime.timedelta(days=_VALID_DAYS)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        make_private_folder(folder)
        write_atomic(folder / "key.pem", key_text, mode=0o600, follow_symlinks=True)
        write_atomic(
            folder / "certificate.pem",
            certificate.public_bytes(serialization.Encoding.PEM),
            mode=0o600,
            follow_symlinks=True,
        )
    except (OSError, ToolError) as error:
        raise OutputError(f"the certificate of the cluster cannot be written: {error}") from error


def security_in(folder: Path) -> "Security":
    """Return the security of a scheduler, worker or client that holds the certificate in a folder.

    Raises:
        ConfigError: There is none, or it cannot be read.
    """
    from distributed.security import Security

    try:
        certificate = (folder / "certificate.pem").read_text()
        key = (folder / "key.pem").read_text()
    except OSError as error:
        raise ConfigError(f"{folder} holds no certificate of a campaign: {error.strerror}") from error
    roles = {
        f"tls_{role}_{kind}": text
        for role in ("client", "scheduler", "worker")
        for kind, text in (("cert", certificate), ("key", key))
    }
    return Security(require_encryption=True, tls_ca_file=certificate, **roles)
