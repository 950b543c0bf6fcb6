"""The two lowest layers: hardware, and the operating system with its drivers and versions of CUDA."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from panpan.capabilities.environment.elf_file import LibrarySearch, newest, read_elf
from panpan.capabilities.environment.layers import Finding
from panpan.errors import ToolError
from panpan.python_environments.machine_root import MachineRoot
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

Version: TypeAlias = tuple[int, ...]
Capability: TypeAlias = tuple[int, int]
"""Compute capability of a GPU, such as (9, 0)."""

# Which versions go together, according to NVIDIA and PyTorch. A version that is not listed is unknown.
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
"""Last CUDA version for GPUs up to a compute capability: CUDA 12.0 dropped Kepler, 13.0 all before Turing.

From "Deprecated Architectures" in the release notes of the CUDA toolkit, and the same file of LLVM.
"""

OLDEST_OF_TORCH: Sequence[tuple[Version, Version, Capability]] = (
    ((2, 11), (12, 8), (7, 5)),
    ((2, 8), (12, 8), (7, 0)),
)
"""Lowest compute capability of PyTorch's wheels, from a version of PyTorch and of CUDA on.

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


def version_text(version: Sequence[int]) -> str:
    """Return numbers as a version."""
    return ".".join(map(str, version))


_NVIDIA_VERSION = compile_late(r"\b(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\b")
_QUOTED = compile_late(r'^PRETTY_NAME="?([^"\n]*)', re.MULTILINE)
_MAC_VERSION = "/System/Library/CoreServices/SystemVersion.plist"


@dataclass(frozen=True, slots=True)
class NvidiaDriver:
    """NVIDIA's driver: its module in the kernel, and its library for programs."""

    version: Version
    """Version of the module; empty if it is not loaded."""
    is_loaded: bool
    libcuda: str
    """Path of the library; empty if there is none."""
    libcuda_version: Version
    """Version in its file name; empty if there is none, or if the library is the one for older drivers."""
    has_forward_compatibility: bool
    """True if CUDA's newer libcuda for older drivers is installed ("Forward Compatibility" in "CUDA Compatibility")."""


@dataclass(frozen=True, slots=True)
class DriverLayer:
    """The system that programs run on."""

    system: str
    """Name and version, such as `Ubuntu 22.04.4 LTS`; empty if unknown."""
    kind: Literal["linux", "macos", ""]
    kernel: str
    libc: Literal["glibc", "musl", ""]
    glibc: Version
    """Empty where there is none or it is not known."""
    is_wsl: bool
    """True if it is Linux in Windows (WSL), where Windows has the driver."""
    nvidia: NvidiaDriver
    has_amdgpu: bool


def inspect_driver(root: MachineRoot, search: LibrarySearch) -> DriverLayer:
    """Return the system of a machine."""
    release = root.text("/etc/os-release", max_bytes=10_000) or root.text("/usr/lib/os-release", max_bytes=10_000)
    mac = _mac_version(root)
    kernel = (root.text("/proc/sys/kernel/osrelease", max_bytes=1_000) or "").strip()
    libc, glibc = _libc(root, search)
    match = _QUOTED.search(release or "")
    return DriverLayer(
        system=f"macOS {mac}" if mac else match[1] if match else "",
        kind="macos" if mac else "linux" if release or kernel else "",
        kernel=kernel,
        libc=libc,
        glibc=glibc,
        is_wsl="microsoft" in kernel.lower() or root.exists("/dev/dxg"),
        nvidia=_nvidia(root, search),
        has_amdgpu=root.exists("/sys/module/amdgpu") or root.exists("/dev/kfd"),
    )


def _nvidia(root: MachineRoot, search: LibrarySearch) -> NvidiaDriver:
    module = root.text("/proc/driver/nvidia/version", max_bytes=10_000) or root.text("/sys/module/nvidia/version")
    version = _NVIDIA_VERSION.search(module or "")
    libcuda = search.find("libcuda.so.1")
    place = (root.resolve(libcuda) or "") if libcuda else ""
    is_compatible = "/compat/" in place
    named = None if is_compatible else re.search(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$", place)
    return NvidiaDriver(
        numbers(version[1]) if version else (),
        module is not None,
        libcuda,
        numbers(named[1]) if named else (),
        is_compatible or root.exists("/usr/local/cuda/compat/libcuda.so.1"),
    )


def driver_findings(layer: DriverLayer) -> Sequence[Finding]:
    """Return the findings of the layer, for the report."""
    nvidia = layer.nvidia
    libc = {"glibc": f"glibc {version_text(layer.glibc) or 'of an unknown version'}", "musl": "musl", "": "unknown"}
    driver = driver_text(nvidia.version) or ("of an unknown version" if nvidia.is_loaded else "none")
    found = [
        ("system", layer.system or "unknown", ""),
        ("kernel", layer.kernel or "unknown", "/proc/sys/kernel/osrelease"),
        ("C library", libc[layer.libc], ""),
        ("NVIDIA driver", "that of Windows" if layer.is_wsl else driver, "/proc/driver/nvidia/version"),
        (
            "libcuda",
            driver_text(nvidia.libcuda_version) or ("found" if nvidia.libcuda else "none"),
            nvidia.libcuda,
        ),
    ]
    if layer.has_amdgpu:
        found.append(("AMD driver", "amdgpu", "/sys/module/amdgpu"))
    return [Finding(layer="driver", name=name, value=value, source=source) for name, value, source in found]


def _libc(root: MachineRoot, search: LibrarySearch) -> tuple[Literal["glibc", "musl", ""], Version]:
    """The version of glibc is the newest that its symbols have; nothing is run to ask for it."""
    if place := search.find("libc.so.6"):
        with root.opened(place) as stream:
            try:
                elf = read_elf(stream) if stream is not None else None
            except ToolError:
                elf = None
        return "glibc", newest(elf.versions_defined, "GLIBC") if elf else ()
    is_musl = any(name.startswith(("ld-musl-", "libc.musl-")) for name in root.names("/lib"))
    return ("musl" if is_musl else ""), ()


def _mac_version(root: MachineRoot) -> str:
    import plistlib  # imports an XML parser, which Linux never needs

    text = root.text(_MAC_VERSION, max_bytes=100_000)
    if text is None:
        return ""
    try:
        found = plistlib.loads(text.encode()).get("ProductVersion", "")
    except Exception:  # plistlib raises its own errors and those of its XML parser
        return ""
    return found if isinstance(found, str) else ""


Vendor: TypeAlias = Literal["nvidia", "amd"]

_VENDORS: dict[str, Vendor] = {"0x10de": "nvidia", "0x1002": "amd"}
_DISPLAY, _ACCELERATOR = "0x03", "0x12"
"""Classes of PCI devices that GPUs are in (pci.ids); AMD's without a screen are processing accelerators."""
_MAX_DEVICES = 2_000


@dataclass(frozen=True, slots=True)
class Gpu:
    """A graphics card or accelerator."""

    vendor: Vendor
    name: str
    capability: Capability | None
    """Compute capability of NVIDIA's; None where it is not known."""


@dataclass(frozen=True, slots=True)
class HardwareLayer:
    """GPUs, processor, memory and free disk space of the machine."""

    gpus: tuple[Gpu, ...]
    lists_devices: bool
    """True if the kernel lists all GPUs as PCI devices. It does not in some containers, nor on NVIDIA's Jetson."""
    processor: str
    cores: int
    flags: frozenset[str]
    """Features of the processor as /proc/cpuinfo names them; empty if unknown."""
    memory_gb: float
    """10⁹ bytes; 0 where it is not known."""
    disk_free_gb: float | None
    """10⁹ bytes that are free where the environment lies; None where it is not known."""

    def of(self, vendor: Vendor) -> Sequence[Gpu]:
        """Return the GPUs of one vendor."""
        return [gpu for gpu in self.gpus if gpu.vendor == vendor]


def inspect_hardware(root: MachineRoot, place: str = "/") -> HardwareLayer:
    """Return the hardware of a machine, with the free space on the disk of `place`."""
    listed = list(_listed_gpus(root))
    driven = list(_driven_gpus(root))
    others = [gpu for gpu in listed if gpu.vendor != "nvidia"]
    gpus = (*driven, *others) if driven else tuple(listed)  # NVIDIA's driver knows the names of all its GPUs
    cpuinfo = root.text("/proc/cpuinfo") or ""
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d{1,15}) kB", root.text("/proc/meminfo") or "", re.MULTILINE)
    free = root.free_bytes(place)
    return HardwareLayer(
        gpus=tuple(gpus),
        lists_devices=bool(root.names("/sys/bus/pci/devices")) and not root.exists("/etc/nv_tegra_release"),
        processor=model[1].strip() if model else "",
        cores=len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)),
        flags=frozenset(flags[1].split()) if flags else frozenset(),
        memory_gb=int(memory[1]) * 1024 / 1e9 if memory else 0.0,
        disk_free_gb=None if free is None else free / 1e9,
    )


def hardware_findings(layer: HardwareLayer) -> list[Finding]:
    """Return the findings of the layer, for the report."""
    found = [Finding(layer="hardware", name="GPU", value=_described(gpu)) for gpu in layer.gpus]
    if not found:
        none = "none" if layer.lists_devices else "unknown: the kernel lists no devices here"
        found = [Finding(layer="hardware", name="GPU", value=none)]
    processor = f"{layer.processor or 'unknown'}, threads: {layer.cores or 'unknown'}"
    wide = [flag for flag in ("avx", "avx2", "avx512f", "asimd", "sve") if flag in layer.flags]
    extensions = ", ".join(wide) or ("none of AVX" if layer.flags else "unknown")
    memory = f"{layer.memory_gb:.1f} GB" if layer.memory_gb else "unknown"
    free = "unknown" if layer.disk_free_gb is None else f"{layer.disk_free_gb:.1f} GB free"
    return [
        *found,
        Finding(layer="hardware", name="processor", value=processor, source="/proc/cpuinfo"),
        Finding(layer="hardware", name="vector extensions", value=extensions, source="/proc/cpuinfo"),
        Finding(layer="hardware", name="memory", value=memory, source="/proc/meminfo"),
        Finding(layer="hardware", name="disk", value=free),
    ]


def _described(gpu: Gpu) -> str:
    return f"{gpu.name}, compute capability {version_text(gpu.capability)}" if gpu.capability else gpu.name


def _driven_gpus(root: MachineRoot) -> Iterator[Gpu]:
    for name in root.names("/proc/driver/nvidia/gpus")[:_MAX_DEVICES]:
        text = root.text(f"/proc/driver/nvidia/gpus/{name}/information", max_bytes=10_000) or ""
        if match := re.search(r"^Model:\s*(.+?)\s*$", text, re.MULTILINE):
            yield Gpu("nvidia", match[1][:100], capability_of(match[1]))


def _listed_gpus(root: MachineRoot) -> Iterator[Gpu]:
    for address in root.names("/sys/bus/pci/devices")[:_MAX_DEVICES]:
        folder = f"/sys/bus/pci/devices/{address}"
        kind = _word(root, f"{folder}/class")
        vendor = _VENDORS.get(_word(root, f"{folder}/vendor"))
        if vendor is None or not kind.startswith((_DISPLAY, _ACCELERATOR)):
            continue
        device = _word(root, f"{folder}/device")
        name = gpu_name(device) if vendor == "nvidia" else ""
        shown = name or f"{ {'nvidia': 'NVIDIA', 'amd': 'AMD'}[vendor] } device {device[:10]}"
        yield Gpu(vendor, shown, capability_of(name))


def _word(root: MachineRoot, path: str) -> str:
    return (root.text(path, max_bytes=100) or "").strip().lower()
