"""What frameworks ask of the GPU's runtime, of the driver and of the hardware."""

from collections.abc import Iterator

from panpan.capabilities.environment.cuda_facts import (
    FIRST_CUDA,
    LAST_CUDA,
    OLDEST_OF_TORCH,
    Capability,
    Version,
    dotted,
    driver_text,
    numbers,
    oldest_driver,
)
from panpan.capabilities.environment.facts import Facts
from panpan.capabilities.environment.layers import Constraint, State, judged
from panpan.capabilities.environment.toolkit_layer import Framework

_NEED_AVX = ("jaxlib", "tensorflow", "tensorflow-cpu", "tf-nightly")
"""Wheels for x86_64 that begin with a check for AVX: jaxlib's cpu_feature_guard, and TensorFlow since 1.6."""


def gpu_constraints(facts: Facts) -> Iterator[Constraint]:
    """Yield what the three lowest layers owe to the frameworks above."""
    yield from _processor(facts)
    if any(one.platform == "cuda" for one in facts.toolkit.frameworks):
        yield from _driver(facts)
    for framework in facts.toolkit.frameworks:
        if framework.platform == "cuda":
            yield from _cuda(framework, facts)
        elif framework.platform == "rocm":
            yield from _rocm(framework, facts)


def _processor(facts: Facts) -> Iterator[Constraint]:
    flags = facts.hardware.flags
    for name in _NEED_AVX:
        if facts.python.package(name) and facts.python.machine == "x86_64" and flags:
            processor = facts.hardware.processor or "the processor"
            state: State = "holds" if "avx" in flags else "broken"
            yield judged(
                "processor", state, f"{name} needs AVX", f"{processor} has {'it' if state == 'holds' else 'none'}"
            )


def _driver(facts: Facts) -> Iterator[Constraint]:
    """The driver itself: its module in the kernel and its library for programs, of one version."""
    driver, gpus = facts.driver, facts.hardware.of("nvidia")
    if driver.is_wsl:
        has = driver.libcuda or "it is nowhere"
        yield judged("libcuda-missing", "holds" if driver.libcuda else "broken", "libcuda.so.1 of Windows' driver", has)
        return
    if not driver.has_nvidia_module:
        if gpus:
            yield judged("driver-missing", "broken", f"a driver for {gpus[0].name}", "none is loaded")
        return
    if not driver.libcuda:
        has = f"it is nowhere; the kernel's module is {driver_text(driver.nvidia) or 'loaded'}"
        yield judged("libcuda-missing", "broken", "libcuda.so.1 of the driver", has)
    elif driver.nvidia and driver.libcuda_version and driver.nvidia != driver.libcuda_version:
        needs = f"libcuda of the kernel's module, {driver_text(driver.nvidia)}"
        yield judged("driver-match", "broken", needs, f"it is {driver_text(driver.libcuda_version)}")


def _cuda(framework: Framework, facts: Facts) -> Iterator[Constraint]:
    what = f"{framework.name} {framework.version}"
    hardware, driver = facts.hardware, facts.driver
    yield from _toolkit(framework, facts)
    if not hardware.of("nvidia") and not driver.is_wsl and not driver.has_nvidia_module:
        if hardware.lists_devices:
            yield judged("no-gpu", "risk", f"{what} is built for NVIDIA's GPUs", "there is none")
        else:
            yield judged("no-gpu", "unknown", f"{what} is built for NVIDIA's GPUs", "no devices are listed here")
        return
    if framework.cudnn and not facts.binaries.search.all_named(f"libcudnn.so.{framework.cudnn[0]}"):
        others = list(facts.binaries.search.all_named("libcudnn.so"))[:3]
        has = f"there is {', '.join(others)}" if others else "it is nowhere"
        yield judged("gpu-library", "broken", f"{what} needs cuDNN {dotted(framework.cudnn)}", has)
    yield from _new_enough_driver(framework, facts)
    for name, capability in {gpu.name: gpu.capability for gpu in hardware.of("nvidia")}.items():
        yield _generation(framework, name, capability)


def _toolkit(framework: Framework, facts: Facts) -> Iterator[Constraint]:
    toolkit = facts.toolkit.toolkit
    if framework.name == "torch" and toolkit and framework.runtime and toolkit[0] != framework.runtime[0]:
        needs = f"CUDA {framework.runtime[0]} to compile extensions of PyTorch {framework.version}"
        yield judged("toolkit-version", "risk", needs, f"/usr/local/cuda is {dotted(toolkit)}")


def _new_enough_driver(framework: Framework, facts: Facts) -> Iterator[Constraint]:
    driver = facts.driver
    if not driver.has_nvidia_module and not driver.is_wsl:
        return
    cuda = dotted(framework.runtime)
    oldest = oldest_driver(framework.runtime)
    if oldest is None or not driver.nvidia:
        has = f"it is {driver_text(driver.nvidia)}" if driver.nvidia else "its version is not in a file here"
        needs = f"a driver for CUDA {cuda}, for {framework.name} {framework.version}"
        yield judged("driver-version", "unknown", needs, has)
        return
    needs = f"driver {driver_text(oldest)} or newer for CUDA {cuda}, for {framework.name} {framework.version}"
    has = f"it is {driver_text(driver.nvidia)}"
    if driver.nvidia >= oldest:
        yield judged("driver-version", "holds", needs, has)
    elif driver.has_forward_compatibility:
        yield judged("driver-version", "unknown", needs, f"{has}, with CUDA's own libcuda for older drivers")
    else:
        yield judged("driver-version", "broken", needs, has)


def _generation(framework: Framework, name: str, capability: Capability | None) -> Constraint:
    what = f"{framework.name} {framework.version} with code for {name}"
    cuda = framework.runtime
    if capability is None:
        return judged("gpu-generation", "unknown", what, "its compute capability is not known here")
    shown = dotted(capability)
    first = FIRST_CUDA.get(capability[0])
    if len(cuda) > 1 and first is not None and cuda < first:
        has = f"CUDA {dotted(cuda)} knows no compute capability {shown}; {dotted(first)} is the first that does"
        # The wheels of others bring PTX along, which the driver translates for newer GPUs when it runs.
        return judged("gpu-generation", "broken" if framework.name == "torch" else "risk", what, has)
    for newest, last in LAST_CUDA:
        if capability <= newest and cuda[:1] > last[:1]:
            has = f"CUDA {dotted(cuda)} gave up compute capability {shown}; {last[0]}.x is the last that has it"
            return judged("gpu-generation", "broken", what, has)
    oldest = _oldest_of_torch(numbers(framework.version), cuda) if framework.name == "torch" else None
    if oldest is not None and capability < oldest:
        has = f"its wheels begin at compute capability {dotted(oldest)}, and this is {shown}"
        return judged("gpu-generation", "broken", what, has)
    if len(cuda) < 2 and first is not None and cuda <= first:
        return judged("gpu-generation", "unknown", what, f"nothing says which CUDA {dotted(cuda)} it is")
    return judged("gpu-generation", "holds", what, f"CUDA {dotted(cuda)} has compute capability {shown}")


def _oldest_of_torch(torch: Version, cuda: Version) -> Capability | None:
    return next((oldest for since, runtime, oldest in OLDEST_OF_TORCH if torch >= since and cuda >= runtime), None)


def _rocm(framework: Framework, facts: Facts) -> Iterator[Constraint]:
    what = f"{framework.name} {framework.version} is built for AMD's GPUs"
    hardware = facts.hardware
    if hardware.of("amd"):
        if not facts.driver.has_amdgpu:
            yield judged("amd-driver", "broken", f"a driver for {hardware.of('amd')[0].name}", "none is loaded")
    elif hardware.of("nvidia"):
        yield judged("gpu-vendor", "broken", what, f"there is {hardware.of('nvidia')[0].name}")
    elif hardware.lists_devices:
        yield judged("no-gpu", "risk", what, "there is none")
    else:
        yield judged("no-gpu", "unknown", what, "no devices are listed here")
