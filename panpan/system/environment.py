"""Environment of commands: what programs need of the user's own, and nothing that would ask or page.

The rule: every child process gets its environment from here, so that no key reaches a command. What the model, panpan
or a repository starts gets the variables that are listed (`child_environment`); what the user typed or set up
gets all but keys (`user_environment`). And how the user installs a package that panpan misses.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from panpan.system.text.redact import holds_login, looks_like_key
from panpan.types.pattern import compile_late

PASSED_VARIABLES = """
    # The user, the shell, language and time
    PATH HOME USER LOGNAME USERNAME SHELL PWD OLDPWD SHLVL HOSTNAME HOST HOSTTYPE MACHTYPE OSTYPE EMAIL CI
    BASH_ENV BASH_FUNC_* LANG LANGUAGE LC_* LOCPATH NLSPATH TZ TZDIR TMPDIR TMP TEMP TEMPDIR
    XDG_* MANPATH INFOPATH TERMINFO TERMINFO_DIRS TERM_PROGRAM TERM_PROGRAM_VERSION LS_COLORS LESS LESSOPEN LESSCLOSE
    WSL_DISTRO_NAME WSL_INTEROP WSLENV PANPAN_PROCESS_MARKS

    # Attempts of a campaign
    PANPAN_TASK PANPAN_ATTEMPT PANPAN_AXIS_* PORT PORT_*

    # Desktop, agents that hold keys (the variable holds none, and `git push` needs it)
    DISPLAY WAYLAND_DISPLAY XAUTHORITY DBUS_SESSION_BUS_ADDRESS DESKTOP_SESSION BROWSER
    SSH_AUTH_SOCK SSH_AGENT_PID GPG_TTY GPG_AGENT_INFO GNUPGHOME

    # Network: proxies (without passwords) and certificates
    http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE GIT_SSL_CAINFO
    AWS_CA_BUNDLE HTTPLIB2_CA_CERTS GRPC_DEFAULT_SSL_ROOTS_FILE_PATH CURL_HOME WGETRC RES_OPTIONS LOCALDOMAIN

    # git, containers, clouds: who and where, no keys
    GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
    GIT_SSH GIT_SSH_COMMAND GIT_CEILING_DIRECTORIES GIT_DISCOVERY_ACROSS_FILESYSTEM GH_HOST GH_REPO
    DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_BUILDKIT DOCKER_CERT_PATH DOCKER_TLS_VERIFY COMPOSE_FILE
    COMPOSE_PROJECT_NAME KUBECONFIG AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_CONFIG_FILE
    GOOGLE_CLOUD_PROJECT CLOUDSDK_CONFIG CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE

    # Compilers, linkers, build tools
    CC CXX CPP FC F77 F90 LD AR AS NM RANLIB STRIP OBJCOPY CFLAGS CXXFLAGS CPPFLAGS FFLAGS FCFLAGS LDFLAGS LDLIBS LIBS
    ARFLAGS ARCHFLAGS MAKE MAKEFLAGS MFLAGS MAKELEVEL NINJA_STATUS CMAKE_* CTEST_* MESON_* PKG_CONFIG* ACLOCAL_PATH
    CCACHE_* SCCACHE_* DISTCC_* BAZEL* CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH LIBRARY_PATH
    LD_* DYLD_* GCC_* LLVM_* ASAN_* LSAN_* TSAN_* UBSAN_* MSAN_* MALLOC_* GLIBC_TUNABLES GCONV_PATH SOURCE_DATE_EPOCH
    MACOSX_DEPLOYMENT_TARGET SDKROOT DEVELOPER_DIR
    NIX_* IN_NIX_SHELL GUIX_* HOMEBREW_* SPACK_* EASYBUILD_* EBROOT* LMOD_* MODULEPATH MODULESHOME MODULES_*
    LOADEDMODULES _LMFILES_* _ModuleTable* ASDF_* MISE_*

    # Python
    PYTHON* VIRTUAL_ENV* CONDA_* _CONDA_* _CE_* MAMBA_* MICROMAMBA_* PIXI_* PYENV_* PIP_* PIPX_* PIPENV_* POETRY_* PDM_*
    UV_* RYE_* HATCH_* TOX_* NOX* WORKON_HOME PYTEST_* HYPOTHESIS_* COVERAGE_* MYPY* RUFF_* IPYTHONDIR JUPYTER_*
    MPL* NUMBA_* NUMPY_* NPY_* SCIPY_* SKLEARN_* PANDAS_* POLARS_* ARROW_* DASK_* RAY_* KERAS_* CYTHON*
    DJANGO_SETTINGS_MODULE FLASK_APP FLASK_DEBUG

    # Graphics processors and machine learning
    CUDA* CUDNN_* CUBLAS_* CUPY_* NVIDIA_* NVCC_* NVTE_* NCCL_* ROCM_* ROCR_* HIP_* HSA_* AMD_* MIOPEN_* GPU_*
    ONEAPI_* ZE_* SYCL_* TPU_* LIBTPU_* PJRT_* XLA_* JAX_* JAXLIB_* FLAX_* TFDS_* TFHUB_* TORCH* PYTORCH_* TRITON_*
    HF_* HUGGINGFACE_HUB_CACHE TRANSFORMERS_* DATASETS_* DIFFUSERS_* ACCELERATE_* DEEPSPEED_* BITSANDBYTES_* XFORMERS_*
    TOKENIZERS_PARALLELISM SENTENCE_TRANSFORMERS_HOME NLTK_DATA VLLM_* GGML_* LLAMA_* OLLAMA_*
    TF_CONFIG TF_CPP_* TF_CUDNN_* TF_DETERMINISTIC_* TF_ENABLE_* TF_FORCE_* TF_GPU_* TF_NUM_* TF_USE_* TF_XLA_*
    OMP_* GOMP_* KMP_* MKL_* OPENBLAS_* BLIS_* NVPL_* BLAS LAPACK ATLAS VECLIB_* NUMEXPR_* TBB_* TBBROOT

    # Clusters
    SLURM_* SBATCH_* SRUN_* SQUEUE_* PBS_* LSB_* LSF_* SGE_* OMPI_* PMI_* PMIX_* MPI_* MPICH_* I_MPI_* UCX_* FI_*
    MASTER_ADDR MASTER_PORT RANK LOCAL_RANK GROUP_RANK WORLD_SIZE LOCAL_WORLD_SIZE SCRATCH SCRATCHDIR WORK WORKDIR
    SINGULARITY_* APPTAINER_*

    # Other languages
    JAVA_* JDK_* _JAVA_OPTIONS JRE_HOME CLASSPATH M2_HOME MAVEN_* ANT_* GRADLE_* KOTLIN_* SCALA_* SBT_* ANDROID_*
    GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOPROXY GOPRIVATE GONOPROXY GONOSUMDB GOSUMDB GOFLAGS GOOS GOARCH
    GOTOOLCHAIN GOMAXPROCS GOGC GOMEMLIMIT GODEBUG GOEXPERIMENT GOWORK GO111MODULE CGO_*
    RUST* CARGO_* NODE_* NVM_* VOLTA_* FNM_* N_PREFIX NPM_CONFIG_* npm_config_* YARN_* PNPM_* BUN_* DENO_* COREPACK_*
    RUBY* GEM_* RBENV_* RVM_* BUNDLE_PATH BUNDLE_GEMFILE BUNDLE_APP_CONFIG PERL* PHPRC PHP_INI_SCAN_DIR COMPOSER_HOME
    DOTNET_* NUGET_PACKAGES LUA_* ERL_* MIX_* HEX_HOME SWIFT_* OPAM* OCAML* CAML_LD_LIBRARY_PATH GHC* CABAL_* STACK_ROOT
    R_* RENV_* JULIA_* OCTAVE_* MATLAB* LEAN_* ELAN_HOME COQ* SAGE_* TEXINPUTS TEXMF* BIBINPUTS BSTINPUTS
"""


@cache
def passed_names() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the whole names, and what other names begin with."""
    words = [word for line in PASSED_VARIABLES.splitlines() for word in line.partition("#")[0].split()]
    beginnings = tuple(word.removesuffix("*") for word in words if word.endswith("*"))
    return frozenset(word for word in words if not word.endswith("*")), beginnings


_SECRET_NAME = compile_late(
    r"KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|_AUTH$|AUTH_CONFIG|(?:^|_)(?:PASS|PWD|PAT)$|COOKIE|JWT"
    r"|^(?:PANPAN|ANTHROPIC|OPENAI)_",
    re.IGNORECASE,
)
"""Names of secrets. SSH_AUTH_SOCK does not count: it holds no key, and without it `git push` could not work."""

TASK_VARIABLE, ATTEMPT_VARIABLE, AXIS_VARIABLES = "PANPAN_TASK", "PANPAN_ATTEMPT", "PANPAN_AXIS_"
"""Variables of an attempt of a campaign, for its commands: the task's id, the number, and the beginning of those with
the values of the axes."""

_HARMLESS_NAMES = frozenset({"PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "KEYTIMEOUT", "PANPAN_PROCESS_MARKS"})
"""Names that look like secrets and are none: shell, Hugging Face, and our own marks of process trees."""

_OF_PANPAN = compile_late(r"(?:PANPAN|ANTHROPIC|OPENAI)_", re.IGNORECASE)
"""Variables that no setting passes on."""

FORCES_COLOUR = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "LINES"})
"""Variables that would bring colours or widths of a terminal into what commands print."""

_QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GH_PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "AWS_PAGER": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GH_PROMPT_DISABLED": "1",
    "PIP_NO_INPUT": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    # Accept the default text instead of waiting for an editor that nobody sees.
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    # Without this, output of a killed Python program would be lost in its buffer.
    "PYTHONUNBUFFERED": "1",
}
"""Nobody is there to answer, to scroll or to see colours."""


def child_environment(base: Mapping[str, str] | None = None, *, pass_env: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment for what the model, panpan or a repository starts: variables that are known to be needed.

    A key under a name that tells nothing (the `api_key_env` of a provider) is not known here; the session leaves it out
    of `base`.

    Args:
        base: What to start from; the process's own environment if not given.
        pass_env: Names that the user wants to be passed, too. One with wildcards (`WANDB_*`) passes nothing that is
            named or looks like a secret; a whole name does, for they have named it.
    """
    start = os.environ if base is None else base
    whole, beginnings = passed_names()
    named = _named(pass_env)
    patterns = [pattern for pattern in pass_env if _has_wildcard(pattern)]
    kept = {
        name: value
        for name, value in start.items()
        if name in named
        or (
            (name in whole or name.startswith(beginnings) or any(fnmatchcase(name, one) for one in patterns))
            and not _is_secret(name, value)
        )
    }
    return _quiet(kept)


def user_environment(base: Mapping[str, str] | None = None, *, pass_env: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment for a command that the user has typed or set up: all but what looks like a secret.

    The arguments are those of `child_environment`.
    """
    start = os.environ if base is None else base
    named = _named(pass_env)
    return _quiet({name: value for name, value in start.items() if name in named or not _is_secret(name, value)})


def is_of_panpan(name: str) -> bool:
    """True if a variable is panpan's own or of the SDKs, and never passed on to commands."""
    return _OF_PANPAN.match(name) is not None


def is_of_attempt(name: str) -> bool:
    """True if a variable tells an attempt of a campaign what it is."""
    return name in (TASK_VARIABLE, ATTEMPT_VARIABLE) or name.startswith(AXIS_VARIABLES)


def is_named_like_secret(name: str) -> bool:
    """True if a variable is named as secrets are."""
    return _SECRET_NAME.search(name) is not None


def _quiet(kept: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in kept.items() if name not in FORCES_COLOUR} | _QUIET


def _named(pass_env: Sequence[str]) -> set[str]:
    """Return the whole names that are passed although they are named like secrets, for the user has named them."""
    return {pattern for pattern in pass_env if not _has_wildcard(pattern) and not is_of_panpan(pattern)}


def _has_wildcard(name: str) -> bool:
    return any(character in name for character in "*?[")


def _is_secret(name: str, value: str) -> bool:
    is_named_so = name not in _HARMLESS_NAMES and not is_of_attempt(name) and is_named_like_secret(name)
    return is_named_so or looks_like_key(value) or holds_login(value)


def how_to_install(*requirements: str) -> str:
    """Return the line that installs packages into the environment that panpan itself runs in."""
    return shlex.join(install_command(*requirements))


def install_command(*requirements: str, prefix: Path | None = None) -> Sequence[str]:
    """Return the command that installs packages into the environment that panpan itself runs in.

    pipx is asked where it has made the environment, so that they stay there when panpan is upgraded. Otherwise the
    command names the environment's Python, since the `pip` of the user's shell is often another one's. It names the
    packages themselves, since panpan is on no package index: a stranger's package of that name would be installed.

    Args:
        requirements: Packages with their bounds, as in pyproject.toml.
        prefix: The environment.
    """
    environment = prefix or Path(sys.prefix)
    if (environment / "pipx_metadata.json").is_file() and shutil.which("pipx"):
        return ["pipx", "inject", environment.name, *requirements]
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", *requirements]
    return ["uv", "pip", "install", "--python", sys.executable, *requirements]  # uv has installed it, as a tool
