"""What NVIDIA and PyTorch say of versions that go together. Tables are short: what is not in them is unknown."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Version: TypeAlias = tuple[int, ...]
Capability: TypeAlias = tuple[int, int]
"""Compute capability of a GPU, such as (9, 0)."""

OLDEST_DRIVER: Sequence[tuple[Version, Version]] = (
    ((13,), (580,)),
    ((12,), (525, 60, 13)),
    ((11,), (450, 80, 2)),
    ((10, 2), (440, 33)),
    ((10, 1), (418, 39)),
    ((10, 0), (410, 48)),
    ((9, 2), (396, 26)),
)
"""The oldest Linux driver for a CUDA runtime, with the minor version compatibility that holds from CUDA 11 on.

From "CUDA Compatibility" (docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html), tables 1 and 2,
and the release notes of the CUDA toolkit, "CUDA Toolkit and Minimum Required Driver Version".
"""

FIRST_CUDA: Mapping[int, Version] = {7: (9, 0), 8: (11, 0), 9: (11, 8), 10: (12, 8), 11: (13, 0), 12: (12, 8)}
"""The first CUDA with code for a generation of GPUs, by the major number of its compute capability.

Within one generation code for a lower minor number runs, too. From `MinVersionForOffloadArch` of LLVM's
clang/lib/Basic/Cuda.cpp and the release notes of the CUDA toolkit.
"""

LAST_CUDA: Sequence[tuple[Capability, Version]] = (((3, 7), (11, 8)), ((7, 2), (12, 9)))
"""Up to which compute capability GPUs were given up after which CUDA: Kepler with 12.0, all before Turing with 13.0.

From "Deprecated Architectures" in the release notes of the CUDA toolkit, and the same file of LLVM.
"""

OLDEST_OF_TORCH: Sequence[tuple[Version, Version, Capability]] = (
    ((2, 11), (12, 8), (7, 5)),
    ((2, 8), (12, 8), (7, 0)),
)
"""From which PyTorch with which CUDA on its wheels begin at which compute capability.

From issues 157517 and 172352 of pytorch/pytorch, and its RELEASE.md, "PyTorch CUDA Support Matrix".
"""

_CAPABILITIES: Sequence[tuple[str, Capability]] = (
    (r"\bGB10\b", (12, 1)),
    (r"RTX (PRO \d000|50[5-9]0)", (12, 0)),
    (r"\b(GB300|B300)\b", (10, 3)),
    (r"\b(GB200|B200)\b", (10, 0)),
    (r"\b(GH200|H200|H100|H800|H20)\b", (9, 0)),
    (r"\b(L4|L20|L40|L40S)\b|RTX 40[5-9]0|RTX \d000 Ada", (8, 9)),
    (r"\b(A40|A10|A10G|A16|A2)\b|RTX A[2-6]000|RTX 30[5-9]0", (8, 6)),
    (r"\b(A100|A800|A30)\b", (8, 0)),
    (r"\bT4\b|RTX 20[6-8]0|GTX 16[5-6]0|Quadro RTX [4-8]000|TITAN RTX", (7, 5)),
    (r"\bV100\b|TITAN V\b|GV100", (7, 0)),
    (r"\b(P40|P4)\b|GTX 10[5-8]0", (6, 1)),
    (r"\bP100\b|GP100", (6, 0)),
    (r"\bM[46]0\b|GTX 9[5-8]0", (5, 2)),
    (r"\bK80\b", (3, 7)),
)
"""Compute capability by the name of the GPU; from developer.nvidia.com/cuda-gpus and cuda-legacy-gpus."""

_NAMES: Mapping[str, str] = {
    "0x20b0": "NVIDIA A100-SXM4-40GB", "0x20b2": "NVIDIA A100-SXM4-80GB", "0x20b5": "NVIDIA A100 80GB PCIe",
    "0x20b7": "NVIDIA A30", "0x20f1": "NVIDIA A100-PCIE-40GB", "0x2204": "NVIDIA GeForce RTX 3090",
    "0x2230": "NVIDIA RTX A6000", "0x2235": "NVIDIA A40", "0x2236": "NVIDIA A10", "0x2237": "NVIDIA A10G",
    "0x2321": "NVIDIA H100 NVL", "0x2330": "NVIDIA H100 80GB HBM3", "0x2331": "NVIDIA H100 PCIe",
    "0x2335": "NVIDIA H200", "0x2342": "NVIDIA GH200", "0x2684": "NVIDIA GeForce RTX 4090", "0x26b5": "NVIDIA L40",
    "0x26b9": "NVIDIA L40S",
}  # fmt: skip
"""Names by PCI device id; from "Compatible GPUs" in the README of NVIDIA/open-gpu-kernel-modules."""


def gpu_name(device: str) -> str:
    """Return the name of NVIDIA's GPU with a PCI device id such as `0x2330`; empty where it is not known here."""
    return _NAMES.get(device, "")


def capability_of(name: str) -> Capability | None:
    """Return the compute capability of a GPU by its name; None where it is not known here."""
    return next((found for pattern, found in _CAPABILITIES if re.search(pattern, name)), None)


def oldest_driver(cuda: Version) -> Version | None:
    """Return the oldest driver that runs programs of a CUDA version; None where it is not known here."""
    return next((driver for version, driver in OLDEST_DRIVER if cuda[: len(version)] == version), None)


def driver_text(version: Version) -> str:
    """Return the version of a driver as NVIDIA writes it: `535.129.03`."""
    return ".".join([str(version[0]), *(f"{number:02}" for number in version[1:])]) if version else ""


def numbers(text: str) -> Version:
    """Return the numbers that a version begins with: `12.1.105` is (12, 1, 105); empty where it begins otherwise."""
    match = re.match(r"\d{1,5}(?:\.\d{1,5}){0,4}", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def dotted(version: Sequence[int]) -> str:
    """Return numbers as a version."""
    return ".".join(map(str, version))
