"""Machines as trees of files: the files of the kernel, the system and a Python environment, in a folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fakes.elf_files import elf_file

CONTENTS = str | bytes

PROJECT = "/home/me/project"
ENVIRONMENT = f"{PROJECT}/.venv"
OLD_STRINGS = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
NEW_STRINGS = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
"""The same function of PyTorch's c10, built with GCC's older and newer strings."""


class Machine:
    """A Linux machine with a project; at first without a GPU, a driver and an environment.

    Args:
        root: An empty folder, which is its `/`.
        arch: Machine as in `uname -m`.
    """

    def __init__(self, root: Path, arch: str = "x86_64") -> None:
        self.root = root
        self.arch = arch
        self.site = ""
        self.abi = ""
        self.file("/proc/meminfo", "MemTotal:       65804128 kB\n")
        self.file("/sys/bus/pci/devices/0000:00:00.0/class", "0x060000\n")
        self.processor("fpu sse4_2 avx avx2")
        (root / PROJECT[1:]).mkdir(parents=True)

    def file(self, path: str, content: CONTENTS = "") -> None:
        place = self.root / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)

    def link(self, path: str, target: str) -> None:
        place = self.root / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def linux(self, name: str = "Ubuntu 22.04.4 LTS", glibc: int = 35, libstdcxx: int = 30) -> None:
        """Add a distribution, with the newest minor versions of glibc 2 and of GLIBCXX 3.4."""
        self.file("/etc/os-release", f'PRETTY_NAME="{name}"\n')
        self.file("/proc/sys/kernel/osrelease", "5.15.0-105-generic\n")
        folder = f"/usr/lib/{self.arch}-linux-gnu"
        self.library(f"{folder}/libc.so.6", defined=[f"GLIBC_2.{minor}" for minor in range(2, glibc + 1)])
        self.library(f"{folder}/libstdc++.so.6", defined=[f"GLIBCXX_3.4.{minor}" for minor in range(libstdcxx + 1)])

    def alpine(self) -> None:
        self.file("/etc/os-release", 'PRETTY_NAME="Alpine Linux v3.20"\n')
        self.file("/proc/sys/kernel/osrelease", "6.6.31-0-lts\n")
        self.library(f"/lib/ld-musl-{self.arch}.so.1")
        self.link(f"/lib/libc.musl-{self.arch}.so.1", f"ld-musl-{self.arch}.so.1")

    def library(self, path: str, **facts: object) -> None:
        self.file(path, elf_file(self.arch, **facts))  # type: ignore[arg-type]

    def processor(self, flags: str) -> None:
        self.file("/proc/cpuinfo", f"processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: {flags}\n")

    def gpu(self, device: str, vendor: str = "0x10de") -> None:
        folder = "/sys/bus/pci/devices/0000:01:00.0"
        for name, value in (("vendor", vendor), ("device", device), ("class", "0x030200")):
            self.file(f"{folder}/{name}", f"{value}\n")

    def driver(self, version: str, libcuda: str | None = "") -> None:
        """Add NVIDIA's driver; `libcuda` is the version of its library, None if the library is missing."""
        line = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Thu Nov  7 19:25:31 UTC 2023\n"
        self.file("/proc/driver/nvidia/version", line)
        if libcuda is not None:
            folder = f"/usr/lib/{self.arch}-linux-gnu"
            self.library(f"{folder}/libcuda.so.{libcuda or version}")
            self.link(f"{folder}/libcuda.so.1", f"libcuda.so.{libcuda or version}")

    def venv(self, minor: int = 11, version: str = "") -> None:
        """Add a virtual environment of the project, with the Python of the system."""
        self.file(f"{ENVIRONMENT}/pyvenv.cfg", f"home = /usr/bin\nversion = {version or f'3.{minor}.4'}\n")
        self._interpreter(ENVIRONMENT, minor)

    def conda(self, minor: int = 11, **packages: str) -> None:
        """Add a conda environment, with its records of packages."""
        for name, value in {"python": f"3.{minor}.4", **packages}.items():
            self.file(f"{ENVIRONMENT}/conda-meta/{name}-{value}-h123_0.json", "{}")
        self._interpreter(ENVIRONMENT, minor)

    def _interpreter(self, prefix: str, minor: int) -> None:
        self.abi = f"cp3{minor}"
        self.site = f"{prefix}/lib/python3.{minor}/site-packages"
        self.library(f"/usr/bin/python3.{minor}")
        self.link(f"{prefix}/bin/python", f"/usr/bin/python3.{minor}")
        (self.root / self.site[1:]).mkdir(parents=True)

    def package(
        self,
        name: str,
        version: str,
        *,
        requires: Sequence[str] = (),
        requires_python: str = "",
        tag: str = "py3-none-any",
        files: Mapping[str, CONTENTS] | None = None,
        wheel: str = "",
    ) -> None:
        """Add a package as pip installs it, with its files below the folder of packages."""
        files = files or {f"{name.replace('-', '_')}/__init__.py": ""}
        folder = f"{self.site}/{name.replace('-', '_')}-{version}.dist-info"
        head = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
        head += [f"Requires-Python: {requires_python}"] if requires_python else []
        self.file(f"{folder}/METADATA", "\n".join(["Metadata-Version: 2.1", *head, "", "Requires-Dist: a description"]))
        self.file(f"{folder}/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        self.file(f"{folder}/INSTALLER", "pip\n")
        self.file(f"{folder}/RECORD", "".join(f"{path},,\n" for path in files))
        if wheel:
            self.file(f"{folder}/direct_url.json", f'{{"url": "https://example.org/{wheel}", "archive_info": {{}}}}')
        for path, content in files.items():
            self.file(f"{self.site}/{path}", content)

    def module(self, path: str, *, abi: str = "", arch: str = "", **facts: object) -> dict[str, bytes]:
        """Return the file of a compiled module, for `package(files=…)`."""
        minor = (abi or self.abi).removeprefix("cp3")
        machine = arch or self.arch
        name = f"{path}.cpython-3{minor}-{machine}-linux-gnu.so"
        return {name: elf_file(machine, **{"needed": ["libc.so.6"], **facts})}  # type: ignore[arg-type]

    def torch(
        self,
        version: str = "2.3.0",
        cuda: str | None = "12.1",
        *,
        hip: str | None = None,
        cudnn: int = 8,
        has_cudnn: int | None = None,
        has_nccl: bool = True,
    ) -> None:
        """Add PyTorch for CUDA or the processor, with the wheels of its libraries that the arguments ask for."""
        major = (cuda or "").partition(".")[0]
        local = f"cu{cuda.replace('.', '')}" if cuda else f"rocm{hip}" if hip else "cpu"
        wheels = {f"nvidia-cudnn-cu{major}": cudnn, f"nvidia-nccl-cu{major}": 2} if cuda else {}
        libraries = [f"libcudnn.so.{cudnn}", "libnccl.so.2"] if cuda else []
        folders = "$ORIGIN:$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../../nvidia/nccl/lib"
        said = f"__version__ = '{version}+{local}'\ncuda: Optional[str] = {cuda!r}\nhip: Optional[str] = {hip!r}\n"
        files: dict[str, CONTENTS] = {
            "torch/__init__.py": "",
            "torch/version.py": said,
            **self.module("torch/_C", needed=["libtorch.so"], runpath="$ORIGIN/lib"),
            "torch/lib/libtorch.so": elf_file(self.arch, needed=["libc10.so", *libraries], runpath=folders),
            "torch/lib/libc10.so": elf_file(self.arch, needed=["libc.so.6"], symbols=[OLD_STRINGS]),
        }
        requires = [f"{name}=={number}.1" for name, number in wheels.items()]
        tag = f"{self.abi}-{self.abi}-linux_{self.arch}"
        self.package("torch", f"{version}+{local}", requires=requires, tag=tag, files=files)
        if cuda:
            there = has_cudnn or cudnn
            so = {f"nvidia/cudnn/lib/libcudnn.so.{there}": elf_file(self.arch)}
            self.package(f"nvidia-cudnn-cu{major}", f"{there}.1", files=so)
        if cuda and has_nccl:
            so = {"nvidia/nccl/lib/libnccl.so.2": elf_file(self.arch)}
            self.package(f"nvidia-nccl-cu{major}", "2.1", files=so)
