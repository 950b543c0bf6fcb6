"""The layer of GPU runtimes: which CUDA or ROCm the frameworks were built for, and which libraries are there."""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

from panpan.capabilities.environment.binary_layer import BinaryLayer
from panpan.capabilities.environment.driver_layer import (
    FIRST_CUDA,
    LAST_CUDA,
    OLDEST_OF_TORCH,
    Capability,
    Version,
    driver_text,
    numbers,
    oldest_driver,
    version_text,
)
from panpan.capabilities.environment.layers import Constraint, Finding, State, make_constraint
from panpan.capabilities.environment.python_layer import PythonLayer
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import Package
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.capabilities.environment.env_doctor import Facts


Platform: TypeAlias = Literal["cuda", "rocm", "cpu"]

GPU_LIBRARY = compile_late(
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
_DEFINED = compile_late(r"^#define\s+(\w+)\s+(\d{1,5})\s*$", re.MULTILINE)
_TORCH_CUDA = compile_late(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)
_TORCH_HIP = compile_late(r"^hip\b[^=\n]*=\s*['\"]([\w.-]+)['\"]", re.MULTILINE)
_TF_CUDA = compile_late(r"['\"]cuda_version['\"]\s*[,:]\s*['\"]([\d.]+)['\"]")
_TF_CUDNN = compile_late(r"['\"]cudnn_version['\"]\s*[,:]\s*['\"]([\d.]+)['\"]")


@dataclass(frozen=True, slots=True)
class Framework:
    """A package that computes on GPUs, and what it was built for."""

    name: str
    version: str
    platform: Platform
    runtime: Version
    """Version of CUDA or ROCm; empty for `cpu` or if unknown."""
    source: str
    cudnn: Version = ()
    """Version of cuDNN if the framework itself states one; empty otherwise."""


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


def inspect_toolkit(root: MachineRoot, python: PythonLayer, binaries: BinaryLayer) -> ToolkitLayer:
    """Return the runtimes that packages were built for, and those that are installed."""
    toolkit, source = _system_cuda(root)
    rocm = (root.text("/opt/rocm/.info/version", max_bytes=1_000) or "").strip().partition("\n")[0]
    found = [*_headers(root), *_found_libraries(python, binaries)]
    if toolkit:
        found.insert(0, Finding(layer="toolkit", name="CUDA toolkit", value=version_text(toolkit), source=source))
    if rocm:
        found.insert(0, Finding(layer="toolkit", name="ROCm", value=rocm[:50], source="/opt/rocm/.info/version"))
    return ToolkitLayer(tuple(_frameworks(root, python)), toolkit, rocm, tuple(found))


def toolkit_findings(layer: ToolkitLayer, binaries: BinaryLayer) -> list[Finding]:
    """Return the findings of the layer, found and required, for the report."""
    asked = [
        Finding(
            layer="toolkit",
            name={"cuda": "CUDA", "rocm": "ROCm", "cpu": "no GPU"}[one.platform],
            value=f"{version_text(one.runtime)} for {one.name} {one.version}".strip(),
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
    """Return the platform in the local part of a version: CUDA 12.1 for `2.3.0+cu121`; None if it has none.

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


_NEED_AVX = ("jaxlib", "tensorflow", "tensorflow-cpu", "tf-nightly")
"""Wheels for x86_64 that begin with a check for AVX: jaxlib's cpu_feature_guard, and TensorFlow since 1.6."""


def gpu_constraints(facts: "Facts") -> Iterator[Constraint]:
    """Yield the frameworks' constraints on the three lowest layers."""
    yield from _processor(facts)
    if any(one.platform == "cuda" for one in facts.toolkit.frameworks):
        yield from _driver(facts)
    for framework in facts.toolkit.frameworks:
        if framework.platform == "cuda":
            yield from _cuda(framework, facts)
        elif framework.platform == "rocm":
            yield from _rocm(framework, facts)


def _processor(facts: "Facts") -> Iterator[Constraint]:
    flags = facts.hardware.flags
    for name in _NEED_AVX:
        if facts.python.package(name) and facts.python.machine == "x86_64" and flags:
            processor = facts.hardware.processor or "the processor"
            state: State = "holds" if "avx" in flags else "broken"
            yield make_constraint(
                "processor", state, f"{name} needs AVX", f"{processor} has {'it' if state == 'holds' else 'none'}"
            )


def _driver(facts: "Facts") -> Iterator[Constraint]:
    """The driver itself: its module in the kernel and its library for programs, of one version."""
    driver, gpus = facts.driver, facts.hardware.of("nvidia")
    nvidia = driver.nvidia
    if driver.is_wsl:
        has = nvidia.libcuda or "it is nowhere"
        yield make_constraint(
            "libcuda-missing", "holds" if nvidia.libcuda else "broken", "libcuda.so.1 of Windows' driver", has
        )
        return
    if not nvidia.is_loaded:
        if gpus:
            yield make_constraint("driver-missing", "broken", f"a driver for {gpus[0].name}", "none is loaded")
        return
    if not nvidia.libcuda:
        has = f"it is nowhere; the kernel's module is {driver_text(nvidia.version) or 'loaded'}"
        yield make_constraint("libcuda-missing", "broken", "libcuda.so.1 of the driver", has)
    elif nvidia.version and nvidia.libcuda_version and nvidia.version != nvidia.libcuda_version:
        needs = f"libcuda of the kernel's module, {driver_text(nvidia.version)}"
        yield make_constraint("driver-match", "broken", needs, f"it is {driver_text(nvidia.libcuda_version)}")


def _cuda(framework: Framework, facts: "Facts") -> Iterator[Constraint]:
    what = f"{framework.name} {framework.version}"
    hardware, driver = facts.hardware, facts.driver
    yield from _toolkit(framework, facts)
    if not hardware.of("nvidia") and not driver.is_wsl and not driver.nvidia.is_loaded:
        if hardware.lists_devices:
            yield make_constraint("no-gpu", "risk", f"{what} is built for NVIDIA's GPUs", "there is none")
        else:
            yield make_constraint(
                "no-gpu", "unknown", f"{what} is built for NVIDIA's GPUs", "no devices are listed here"
            )
        return
    if framework.cudnn and not facts.binaries.search.all_named(f"libcudnn.so.{framework.cudnn[0]}"):
        others = list(facts.binaries.search.all_named("libcudnn.so"))[:3]
        has = f"there is {', '.join(others)}" if others else "it is nowhere"
        yield make_constraint("gpu-library", "broken", f"{what} needs cuDNN {version_text(framework.cudnn)}", has)
    yield from _new_enough_driver(framework, facts)
    for name, capability in {gpu.name: gpu.capability for gpu in hardware.of("nvidia")}.items():
        yield _generation(framework, name, capability)


def _toolkit(framework: Framework, facts: "Facts") -> Iterator[Constraint]:
    toolkit = facts.toolkit.toolkit
    if framework.name == "torch" and toolkit and framework.runtime and toolkit[0] != framework.runtime[0]:
        needs = f"CUDA {framework.runtime[0]} to compile extensions of PyTorch {framework.version}"
        yield make_constraint("toolkit-version", "risk", needs, f"/usr/local/cuda is {version_text(toolkit)}")


def _new_enough_driver(framework: Framework, facts: "Facts") -> Iterator[Constraint]:
    driver, nvidia = facts.driver, facts.driver.nvidia
    if not nvidia.is_loaded and not driver.is_wsl:
        return
    cuda = version_text(framework.runtime)
    oldest = oldest_driver(framework.runtime)
    if oldest is None or not nvidia.version:
        has = f"it is {driver_text(nvidia.version)}" if nvidia.version else "its version is not in a file here"
        needs = f"a driver for CUDA {cuda}, for {framework.name} {framework.version}"
        yield make_constraint("driver-version", "unknown", needs, has)
        return
    needs = f"driver {driver_text(oldest)} or newer for CUDA {cuda}, for {framework.name} {framework.version}"
    has = f"it is {driver_text(nvidia.version)}"
    if nvidia.version >= oldest:
        yield make_constraint("driver-version", "holds", needs, has)
    elif nvidia.has_forward_compatibility:
        yield make_constraint("driver-version", "unknown", needs, f"{has}, with CUDA's own libcuda for older drivers")
    else:
        yield make_constraint("driver-version", "broken", needs, has)


def _generation(framework: Framework, name: str, capability: Capability | None) -> Constraint:
    what = f"{framework.name} {framework.version} with code for {name}"
    cuda = framework.runtime
    if capability is None:
        return make_constraint("gpu-generation", "unknown", what, "its compute capability is not known here")
    shown = version_text(capability)
    first = FIRST_CUDA.get(capability[0])
    if len(cuda) > 1 and first is not None and cuda < first:
        since = version_text(first)
        has = f"CUDA {version_text(cuda)} knows no compute capability {shown}; {since} is the first that does"
        # Other wheels include PTX, which the driver translates for newer GPUs at run time.
        return make_constraint("gpu-generation", "broken" if framework.name == "torch" else "risk", what, has)
    for newest, last in LAST_CUDA:
        if capability <= newest and cuda[:1] > last[:1]:
            has = f"CUDA {version_text(cuda)} gave up compute capability {shown}; {last[0]}.x is the last that has it"
            return make_constraint("gpu-generation", "broken", what, has)
    oldest = _oldest_of_torch(numbers(framework.version), cuda) if framework.name == "torch" else None
    if oldest is not None and capability < oldest:
        has = f"its wheels begin at compute capability {version_text(oldest)}, and this is {shown}"
        return make_constraint("gpu-generation", "broken", what, has)
    if len(cuda) < 2 and first is not None and cuda <= first:
        return make_constraint("gpu-generation", "unknown", what, f"nothing says which CUDA {version_text(cuda)} it is")
    return make_constraint("gpu-generation", "holds", what, f"CUDA {version_text(cuda)} has compute capability {shown}")


def _oldest_of_torch(torch: Version, cuda: Version) -> Capability | None:
    return next((oldest for since, runtime, oldest in OLDEST_OF_TORCH if torch >= since and cuda >= runtime), None)


def _rocm(framework: Framework, facts: "Facts") -> Iterator[Constraint]:
    what = f"{framework.name} {framework.version} is built for AMD's GPUs"
    hardware = facts.hardware
    if hardware.of("amd"):
        if not facts.driver.has_amdgpu:
            yield make_constraint(
                "amd-driver", "broken", f"a driver for {hardware.of('amd')[0].name}", "none is loaded"
            )
    elif hardware.of("nvidia"):
        yield make_constraint("gpu-vendor", "broken", what, f"there is {hardware.of('nvidia')[0].name}")
    elif hardware.lists_devices:
        yield make_constraint("no-gpu", "risk", what, "there is none")
    else:
        yield make_constraint("no-gpu", "unknown", what, "no devices are listed here")
