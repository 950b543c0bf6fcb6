"""Whether this machine can run the embedded model: the one place that knows what the runtime needs."""

import platform
from importlib.util import find_spec
from pathlib import Path

from panpan.errors import ConfigError
from panpan.system.own_packages import how_to_install

RUNTIME = "xllamacpp>=2026.10.11549,<2027"
"""The package that runs the model, as in the extra `local` of pyproject.toml."""

_CPU_FILE = Path("/proc/cpuinfo")


def require_machine(machine: str | None = None, cpu_file: Path = _CPU_FILE) -> None:
    """Check that this machine can run the embedded model.

    Args:
        machine: Kind of processor, as `platform.machine` tells it.
        cpu_file: Where Linux tells what the processor can do; where it is missing, nothing is known against it.

    Raises:
        ConfigError: The runtime is not installed, or the processor lacks what the runtime needs.
    """
    if (machine or platform.machine()) in ("x86_64", "AMD64", "i386", "i686"):
        try:
            told = cpu_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            told = ""
        flags = next((line.split() for line in told.splitlines() if line.startswith("flags")), None)
        if flags is not None and "avx2" not in flags:
            raise ConfigError("the embedded model does not run on this processor: it has no AVX2")
    if find_spec("xllamacpp") is None:
        raise ConfigError(f"the embedded model needs the package xllamacpp; run: {how_to_install(RUNTIME)}")
