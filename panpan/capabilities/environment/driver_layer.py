"""The layer of the operating system: distribution, kernel, C library, and the drivers of the GPUs."""

import re
from collections.abc import Sequence
from typing import Literal

from panpan.capabilities.environment.cuda_facts import Version, dotted, driver_text, numbers
from panpan.capabilities.environment.elf_file import newest, read_elf
from panpan.capabilities.environment.layers import Finding
from panpan.capabilities.environment.library_search import LibrarySearch
from panpan.capabilities.environment.machine_root import MachineRoot
from panpan.errors import ToolError
from panpan.types.dataclass import dataclass

_NVIDIA_VERSION = re.compile(r"\b(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\b")
_QUOTED = re.compile(r'^PRETTY_NAME="?([^"\n]*)', re.MULTILINE)
_MAC_VERSION = "/System/Library/CoreServices/SystemVersion.plist"


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
    nvidia: Version
    """Of the kernel's module; empty where it is not loaded."""
    has_nvidia_module: bool
    libcuda: str
    """Where the driver's library for programs lies; empty where it is nowhere."""
    libcuda_version: Version
    """As the name of its file says; empty where it does not, or where it is one for older drivers."""
    has_forward_compatibility: bool
    """Whether CUDA's own newer libcuda for older drivers is there ("Forward Compatibility" in "CUDA Compatibility")."""
    has_amdgpu: bool


def look_at_driver(root: MachineRoot, search: LibrarySearch) -> DriverLayer:
    """Return the system of a machine."""
    release = root.text("/etc/os-release", max_bytes=10_000) or root.text("/usr/lib/os-release", max_bytes=10_000)
    mac = _mac_version(root)
    kernel = (root.text("/proc/sys/kernel/osrelease", max_bytes=1_000) or "").strip()
    libc, glibc = _libc(root, search)
    module = root.text("/proc/driver/nvidia/version", max_bytes=10_000) or root.text("/sys/module/nvidia/version")
    version = _NVIDIA_VERSION.search(module or "")
    libcuda = search.find("libcuda.so.1")
    place = (root.resolve(libcuda) or "") if libcuda else ""
    is_compatible = "/compat/" in place
    named = None if is_compatible else re.search(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$", place)
    match = _QUOTED.search(release or "")
    return DriverLayer(
        system=f"macOS {mac}" if mac else match[1] if match else "",
        kind="macos" if mac else "linux" if release or kernel else "",
        kernel=kernel,
        libc=libc,
        glibc=glibc,
        is_wsl="microsoft" in kernel.lower() or root.exists("/dev/dxg"),
        nvidia=numbers(version[1]) if version else (),
        has_nvidia_module=module is not None,
        libcuda=libcuda,
        libcuda_version=numbers(named[1]) if named else (),
        has_forward_compatibility=is_compatible or root.exists("/usr/local/cuda/compat/libcuda.so.1"),
        has_amdgpu=root.exists("/sys/module/amdgpu") or root.exists("/dev/kfd"),
    )


def driver_findings(layer: DriverLayer) -> Sequence[Finding]:
    """Return what the layer has, for the report."""
    libc = {"glibc": f"glibc {dotted(layer.glibc) or 'of an unknown version'}", "musl": "musl", "": "unknown"}
    driver = driver_text(layer.nvidia) or ("of an unknown version" if layer.has_nvidia_module else "none")
    found = [
        ("system", layer.system or "unknown", ""),
        ("kernel", layer.kernel or "unknown", "/proc/sys/kernel/osrelease"),
        ("C library", libc[layer.libc], ""),
        ("NVIDIA driver", "that of Windows" if layer.is_wsl else driver, "/proc/driver/nvidia/version"),
        ("libcuda", driver_text(layer.libcuda_version) or ("found" if layer.libcuda else "none"), layer.libcuda),
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
