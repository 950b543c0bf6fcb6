"""The two lowest layers: GPUs, processors and memory; and the operating system with its drivers."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from panpan.capabilities.environment.cuda_facts import (
    Capability,
    Version,
    capability_of,
    dotted,
    driver_text,
    gpu_name,
    numbers,
)
from panpan.capabilities.environment.elf_file import LibrarySearch, newest, read_elf
from panpan.capabilities.environment.layers import Finding
from panpan.errors import ToolError
from panpan.python_environments.machine_root import MachineRoot
from panpan.types.dataclass import dataclass

_NVIDIA_VERSION = re.compile(r"\b(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\b")
_QUOTED = re.compile(r'^PRETTY_NAME="?([^"\n]*)', re.MULTILINE)
_MAC_VERSION = "/System/Library/CoreServices/SystemVersion.plist"


@dataclass(frozen=True, slots=True)
class NvidiaDriver:
    """NVIDIA's driver: its module in the kernel, and its library for programs."""

    version: Version
    """Of the module; empty where it is not loaded."""
    is_loaded: bool
    libcuda: str
    """Where the library lies; empty where it is nowhere."""
    libcuda_version: Version
    """As the name of its file says; empty where it does not, or where it is one for older drivers."""
    has_forward_compatibility: bool
    """Whether CUDA's own newer libcuda for older drivers is there ("Forward Compatibility" in "CUDA Compatibility")."""


@dataclass(frozen=True, slots=True)
class DriverLayer:
    """The system that programs run on."""

    system: str
    """Such as `Ubuntu 22.04.4 LTS`; empty where nothing says."""
    kind: Literal["linux", "macos", ""]
    kernel: str
    libc: Literal["glibc", "musl", ""]
    glibc: Version
    """Empty where there is none or it is not known."""
    is_wsl: bool
    """Whether it is Linux in Windows, where Windows has the driver."""
    nvidia: NvidiaDriver
    has_amdgpu: bool


def look_at_driver(root: MachineRoot, search: LibrarySearch) -> DriverLayer:
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
    """Return what the layer has, for the report."""
    nvidia = layer.nvidia
    libc = {"glibc": f"glibc {dotted(layer.glibc) or 'of an unknown version'}", "musl": "musl", "": "unknown"}
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
    import plistlib  # brings a parser of XML along, which no Linux needs

    text = root.text(_MAC_VERSION, max_bytes=100_000)
    if text is None:
        return ""
    try:
        found = plistlib.loads(text.encode()).get("ProductVersion", "")
    except Exception:  # plistlib raises errors of its XML parser and of its own types alike
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
    """What the machine is built of."""

    gpus: tuple[Gpu, ...]
    lists_devices: bool
    """Whether the kernel lists all GPUs as PCI devices; it does not in some containers, and on NVIDIA's Jetson."""
    processor: str
    cores: int
    flags: frozenset[str]
    """What the processor can, as in /proc/cpuinfo; empty where it is not known."""
    memory_gb: float
    """10⁹ bytes; 0 where it is not known."""
    disk_free_gb: float | None
    """10⁹ bytes that are free where the environment lies; None where it is not known."""

    def of(self, vendor: Vendor) -> Sequence[Gpu]:
        """Return the GPUs of one vendor."""
        return [gpu for gpu in self.gpus if gpu.vendor == vendor]


def look_at_hardware(root: MachineRoot, place: str = "/") -> HardwareLayer:
    """Return what a machine is built of, and the room on the disk that `place` is on."""
    listed = list(_listed_gpus(root))
    driven = list(_driven_gpus(root))
    others = [gpu for gpu in listed if gpu.vendor != "nvidia"]
    gpus = (*driven, *others) if driven else tuple(listed)  # NVIDIA's driver knows the names of all of its own
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
    """Return what the layer has, for the report."""
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
    return f"{gpu.name}, compute capability {dotted(gpu.capability)}" if gpu.capability else gpu.name


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
