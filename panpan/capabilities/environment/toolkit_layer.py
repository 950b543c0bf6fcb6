"""The layer of GPU runtimes: which CUDA or ROCm the frameworks were built for, and which libraries are there."""

import json
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from panpan.capabilities.environment.binary_layer import BinaryLayer
from panpan.capabilities.environment.cuda_facts import Version, dotted, numbers
from panpan.capabilities.environment.layers import Finding
from panpan.capabilities.environment.python_layer import PythonLayer
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import Package
from panpan.types.dataclass import dataclass

Platform: TypeAlias = Literal["cuda", "rocm", "cpu"]

GPU_LIBRARY = re.compile(
    r"lib(cudart|cublas|cublasLt|cudnn\w*|nccl|cufft|cufile|curand|cusolver|cusparse|cusparseLt|cupti|nvrtc|nvJitLink"
    r"|nvToolsExt|nvshmem\w*|amdhip64|rocblas|hipblas|MIOpen|rccl)(?:-[\w.]+)?\.so[\d.]*"
)
"""Libraries that CUDA, its companions, or ROCm bring along."""

_KINDS = {"CUDA runtime": "libcudart.so", "cuBLAS": "libcublas.so", "cuDNN": "libcudnn.so", "NCCL": "libnccl.so"}
_WHEELS = {
    "CUDA runtime": r"nvidia-cuda-runtime(-cu\d+)?",
    "cuBLAS": r"nvidia-cublas(-cu\d+)?",
    "cuDNN": r"nvidia-cudnn(-cu\d+)?",
    "NCCL": r"nvidia-nccl(-cu\d+)?",
}
_HEADERS = {"cuDNN": ("/usr/include/cudnn_version.h", "CUDNN"), "NCCL": ("/usr/include/nccl.h", "NCCL")}
_DEFINED = re.compile(r"^#define\s+(\w+)\s+(\d{1,5})\s*$", re.MULTILINE)
_TORCH_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)
_TORCH_HIP = re.compile(r"^hip\b[^=\n]*=\s*['\"]([\w.-]+)['\"]", re.MULTILINE)
_TF_CUDA = re.compile(r"['\"]cuda_version['\"]\s*[,:]\s*['\"]([\d.]+)['\"]")
_TF_CUDNN = re.compile(r"['\"]cudnn_version['\"]\s*[,:]\s*['\"]([\d.]+)['\"]")


@dataclass(frozen=True, slots=True)
class Framework:
    """A package that computes on GPUs, and what it was built for."""

    name: str
    version: str
    platform: Platform
    runtime: Version
    """Of CUDA or ROCm; empty for `cpu`, or where nothing says."""
    source: str
    """The file that says so."""
    cudnn: Version = ()
    """Where something but its libraries says it."""


@dataclass(frozen=True, slots=True)
class ToolkitLayer:
    """Runtimes that are asked for, and those that are there."""

    frameworks: tuple[Framework, ...]
    toolkit: Version
    """CUDA in /usr/local/cuda; empty where there is none."""
    rocm: str
    """ROCm in /opt/rocm; empty where there is none."""
    found: tuple[Finding, ...]

    def framework(self, name: str) -> Framework | None:
        """Return a framework by the name of its package."""
        return next((one for one in self.frameworks if one.name == name), None)


def look_at_toolkit(root: MachineRoot, python: PythonLayer, binaries: BinaryLayer) -> ToolkitLayer:
    """Return which runtimes the packages were built for and which there are."""
    toolkit, source = _system_cuda(root)
    rocm = (root.text("/opt/rocm/.info/version", max_bytes=1_000) or "").strip().partition("\n")[0]
    found = [*_headers(root), *_found_libraries(python, binaries)]
    if toolkit:
        found.insert(0, Finding(layer="toolkit", name="CUDA toolkit", value=dotted(toolkit), source=source))
    if rocm:
        found.insert(0, Finding(layer="toolkit", name="ROCm", value=rocm[:50], source="/opt/rocm/.info/version"))
    return ToolkitLayer(tuple(_frameworks(root, python)), toolkit, rocm, tuple(found))


def toolkit_findings(layer: ToolkitLayer, binaries: BinaryLayer) -> list[Finding]:
    """Return what the layer has and what is asked of it, for the report."""
    asked = [
        Finding(
            layer="toolkit",
            name={"cuda": "CUDA", "rocm": "ROCm", "cpu": "no GPU"}[one.platform],
            value=f"{dotted(one.runtime)} for {one.name} {one.version}".strip(),
            role="required",
            source=one.source,
        )
        for one in layer.frameworks
    ]
    linked = [
        Finding(layer="toolkit", name=name, value=f"for {user}", role="required", source=user)
        for name, user in sorted(binaries.needed().items())
        if GPU_LIBRARY.fullmatch(name)
    ]
    return [*layer.found, *asked, *linked]


def local_platform(version: str) -> tuple[Platform, Version] | None:
    """Return what the local part of a version says: `2.3.0+cu121` was built for CUDA 12.1; None where it says nothing.

    PyTorch's wheels are named so: `cpu`, `cu118`, `rocm6.0`.
    """
    local = version.partition("+")[2]
    if match := re.match(r"cu(?:da)?(\d{2,3})(?!\d)", local):
        return "cuda", (int(match[1][:-1]), int(match[1][-1]))
    if match := re.match(r"rocm([\d.]+)", local):
        return "rocm", numbers(match[1])
    return ("cpu", ()) if local.startswith("cpu") else None


def _frameworks(root: MachineRoot, python: PythonLayer) -> Iterator[Framework]:
    if (torch := python.package("torch")) and (framework := _torch(root, torch)):
        yield framework
    for name in ("tensorflow", "tensorflow-cpu", "tf-nightly"):
        if package := python.package(name):
            yield _tensorflow(root, package)
    if jaxlib := python.package("jaxlib"):
        yield _jax(python, jaxlib)


def _torch(root: MachineRoot, package: Package) -> Framework | None:
    """PyTorch writes into torch/version.py what it was built for; where that is not there, its version may say it."""
    path = f"{package.folder.rpartition('/')[0]}/torch/version.py"
    text = root.text(path, max_bytes=10_000)
    if text is None:
        said = local_platform(package.version)
        return Framework("torch", package.version, *said, package.folder) if said else None
    if match := _TORCH_HIP.search(text):
        return Framework("torch", package.version, "rocm", numbers(match[1]), path)
    if match := _TORCH_CUDA.search(text):
        return Framework("torch", package.version, "cuda", numbers(match[1]), path)
    return Framework("torch", package.version, "cpu", (), path)


def _tensorflow(root: MachineRoot, package: Package) -> Framework:
    path = f"{package.folder.rpartition('/')[0]}/tensorflow/python/platform/build_info.py"
    text = root.text(path, max_bytes=100_000) or ""
    cuda, cudnn = _TF_CUDA.search(text), _TF_CUDNN.search(text)
    if cuda is None:
        return Framework(package.name, package.version, "cpu", (), path)
    return Framework(package.name, package.version, "cuda", numbers(cuda[1]), path, numbers(cudnn[1]) if cudnn else ())


def _jax(python: PythonLayer, jaxlib: Package) -> Framework:
    """JAX computes on GPUs by a plug-in, `jax-cuda12-plugin`; older versions by a build, `0.4.13+cuda12.cudnn89`."""
    for package in python.packages:
        if match := re.fullmatch(r"jax-cuda(\d+)-(?:plugin|pjrt)", package.name):
            return Framework("jaxlib", jaxlib.version, "cuda", (int(match[1]),), package.folder)
    if match := re.search(r"\+cuda(\d{2})(?!\d)", jaxlib.version):
        return Framework("jaxlib", jaxlib.version, "cuda", (int(match[1]),), jaxlib.folder)
    return Framework("jaxlib", jaxlib.version, "cpu", (), jaxlib.folder)


def _system_cuda(root: MachineRoot) -> tuple[Version, str]:
    path = "/usr/local/cuda/version.json"
    if text := root.text(path, max_bytes=100_000):
        try:
            return numbers(str(json.loads(text)["cuda"]["version"])), path
        except (ValueError, RecursionError, KeyError, TypeError, IndexError):
            pass
    path = "/usr/local/cuda/version.txt"  # until CUDA 11.0
    if match := re.search(r"CUDA Version ([\d.]+)", root.text(path, max_bytes=1_000) or ""):
        return numbers(match[1]), path
    path = root.resolve("/usr/local/cuda") or ""
    match = re.search(r"/cuda-([\d.]+)$", path)
    return (numbers(match[1]), path) if match and root.exists(path) else ((), "")


def _headers(root: MachineRoot) -> Iterator[Finding]:
    """Return the versions of libraries that are installed for the whole system, whose headers say them exactly."""
    for name, (path, prefix) in _HEADERS.items():
        defined = dict(_DEFINED.findall(root.text(path, max_bytes=200_000) or ""))
        parts = [defined.get(f"{prefix}_{part}", "") for part in ("MAJOR", "MINOR")]
        if all(parts):
            yield Finding(layer="toolkit", name=name, value=f"{'.'.join(parts)} (of the system)", source=path)


def _found_libraries(python: PythonLayer, binaries: BinaryLayer) -> Iterator[Finding]:
    for name, start in _KINDS.items():
        for package in python.packages:
            if re.fullmatch(_WHEELS[name], package.name):
                value = f"{package.version} ({package.name})"
                yield Finding(layer="toolkit", name=name, value=value, source=package.folder)
        for library, place in binaries.search.all_named(start).items():
            yield Finding(layer="toolkit", name=name, value=library, source=place)
