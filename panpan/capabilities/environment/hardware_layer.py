"""The lowest layer: GPUs, processors and memory, as the kernel lists them."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from panpan.capabilities.environment.cuda_facts import Capability, capability_of, dotted, gpu_name
from panpan.capabilities.environment.layers import Finding
from panpan.capabilities.environment.machine_root import MachineRoot
from panpan.types.dataclass import dataclass

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
