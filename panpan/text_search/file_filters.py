"""Files that a search looks at: what .gitignore excludes, and names that belong to a type."""

import re
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.globs import compile_glob
from panpan.types.dataclass import dataclass

UNKNOWN_TYPE = "unrecognized file type"
"""Beginning of what both search programs say of a type that they do not know."""

_TYPES = """
asm: *.S *.asm *.s
awk: *.awk
bat: *.bat
bazel: *.BUILD *.bazel *.bazelrc *.bzl BUILD MODULE.bazel WORKSPACE WORKSPACE.bazel WORKSPACE.bzlmod
c: *.[chH] *.[chH].in *.cats
cabal: *.cabal
clojure: *.clj *.cljc *.cljs *.cljx
cmake: *.cmake CMakeLists.txt
cmd: *.bat *.cmd
coffeescript: *.coffee
config: *.cfg *.conf *.config *.ini
cpp: *.[ChH] *.[ChH].in *.[ch]pp *.[ch]pp.in *.[ch]xx *.[ch]xx.in *.cc *.cc.in *.hh *.hh.in *.inl
cs: *.cs
csharp: *.cs
css: *.css *.scss
csv: *.csv
cuda: *.cu *.cuh
cython: *.pxd *.pxi *.pyx
d: *.d
dart: *.dart
docker: *Dockerfile*
elixir: *.eex *.ex *.exs *.heex *.leex *.livemd
elm: *.elm
erlang: *.erl *.hrl
fish: *.fish
fortran: *.F *.F77 *.F90 *.F95 *.f *.f77 *.f90 *.f95 *.pfo
go: *.go
gradle: *.gradle *.gradle.kts gradle-wrapper.* gradle.properties gradlew gradlew.bat
graphql: *.graphql *.graphqls
groovy: *.gradle *.groovy
h: *.h *.hh *.hpp
haskell: *.c2hs *.cpphs *.hs *.hsc *.lhs
hs: *.hs *.lhs
html: *.ejs *.htm *.html
java: *.java *.jsp *.jspx *.properties
jinja: *.j2 *.jinja *.jinja2
jl: *.jl
js: *.cjs *.js *.jsx *.mjs *.vue
json: *.json *.sarif composer.lock
jsonl: *.jsonl
julia: *.jl
jupyter: *.ipynb *.jpynb
kotlin: *.kt *.kts
less: *.less
lisp: *.el *.jl *.lisp *.lsp *.sc *.scm
log: *.log
lua: *.lua
make: *.mak *.mk Makefile.* [Gg][Nn][Uu]makefile [Gg][Nn][Uu]makefile.am [Gg][Nn][Uu]makefile.in [Mm]akefile
make: [Mm]akefile.am [Mm]akefile.in
markdown: *.markdown *.md *.mdown *.mdwn *.mdx *.mkd *.mkdn
matlab: *.m
md: *.markdown *.md *.mdown *.mdwn *.mdx *.mkd *.mkdn
meson: meson.build meson.options meson_options.txt
ml: *.ml
nim: *.nim *.nimble *.nimf *.nims
nix: *.nix
objc: *.h *.m
ocaml: *.ml *.mli *.mll *.mly
org: *.org *.org_archive
perl: *.PL *.perl *.pl *.plh *.plx *.pm *.t
php: *.php *.php3 *.php4 *.php5 *.php7 *.php8 *.pht *.phtml
po: *.po
proto: *.proto
protobuf: *.proto
ps: *.cdxml *.ps1 *.ps1xml *.psd1 *.psm1
puppet: *.epp *.erb *.pp *.rb
py: *.py *.pyi
python: *.py *.pyi
qmake: *.prf *.pri *.pro
r: *.R *.Rmd *.Rnw *.r *.rmd *.rnw
rst: *.rst
ruby: *.gemspec *.rake *.rb *.rbw .irbrc Gemfile Rakefile config.ru
rust: *.rs
sass: *.sass *.scss
scala: *.sbt *.scala
sh: *.bash *.bashrc *.csh *.cshrc *.env *.ksh *.kshrc *.sh *.tcsh *.zsh .bash_login .bash_logout .bash_profile
sh: .bashrc .cshrc .env .kshrc .login .logout .profile .tcshrc .zlogin .zlogout .zprofile .zshenv .zshrc
sh: bash_login bash_logout bash_profile bashrc profile zlogin zlogout zprofile zshenv zshrc
sql: *.psql *.sql
svelte: *.svelte *.svelte.ts
svg: *.svg
swift: *.swift
tex: *.bib *.cls *.dtx *.ins *.ltx *.sty *.tex
tf: *.terraform.lock.hcl *.terraformrc *.tf *.tf.json *.tfrc *.tfvars *.tfvars.json terraform.rc
thrift: *.thrift
toml: *.toml Cargo.lock
ts: *.cts *.mts *.ts *.tsx
twig: *.twig
txt: *.txt
typescript: *.cts *.mts *.ts *.tsx
vim: *.vim .gvimrc .vimrc _gvimrc _vimrc gvimrc vimrc
vue: *.vue
xml: *.dtd *.rng *.sch *.xhtml *.xjb *.xml *.xml.dist *.xsd *.xsl *.xslt
yaml: *.yaml *.yml
zig: *.zig
zsh: *.zsh .zlogin .zlogout .zprofile .zshenv .zshrc zlogin zlogout zprofile zshenv zshrc
"""


def globs_of_type(name: str) -> tuple[str, ...]:
    """Return the globs that the file names of a type match; empty for a type that is not known."""
    lines = (line.partition(": ") for line in _TYPES.splitlines())
    return tuple(glob for known, _, globs in lines if known == name for glob in globs.split())


MAX_FILE_BYTES = 1_000_000
"""Most of a .gitignore that is read."""


@dataclass(frozen=True, slots=True)
class _Rule:
    regex: re.Pattern[str]
    is_negated: bool
    is_for_folders: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in one folder: its own, and those of the folders above it up to the repository's top."""

    folder: str
    """Absolute, without a slash at its end except for the root of the file system."""
    own: tuple[_Rule, ...]
    above: "IgnoreRules | None"

    def is_ignored(self, path: str, *, is_folder: bool) -> bool:
        """True if the entry at the absolute `path`, directly or further below the folder, is excluded."""
        level: IgnoreRules | None = self
        while level is not None:
            relative = path[len(level.folder.rstrip("/")) + 1 :]
            for rule in reversed(level.own):
                if (is_folder or not rule.is_for_folders) and rule.regex.fullmatch(relative):
                    return not rule.is_negated
            level = level.above
        return False


@dataclass(frozen=True, slots=True)
class FolderContext:
    """Facts about a folder that come from the folders around it."""

    is_in_repository: bool
    """True if a git repository is around it. Rules end at its top, and at the tops of repositories inside. Without one,
    .gitignore files still count, and nothing ends them."""
    rules: IgnoreRules | None
    """Rules set by the folders above; None if they set none, or exclude the folder: if it is searched
    by name, only its own rules count."""


def folder_context(folder: Path) -> FolderContext:
    """Return the surroundings of an absolute folder."""
    chain = [folder, *folder.parents]
    top = next((index for index, place in enumerate(chain) if Path(place, ".git").exists()), None)
    if top is not None:
        chain = chain[: top + 1]
    rules: IgnoreRules | None = None
    for parent, child in zip(chain[:0:-1], chain[-2::-1], strict=True):
        rules = rules_in(str(parent), rules, is_in_repository=top is not None)
        if rules.is_ignored(str(child), is_folder=True):
            return FolderContext(top is not None, None)
    return FolderContext(top is not None, rules)


def rules_in(folder: str, above: IgnoreRules | None, *, is_in_repository: bool) -> IgnoreRules:
    """Return the rules in `folder`, given those in the folder above it."""
    place = folder.rstrip("/")
    own = _rules_of(f"{place}/.gitignore")
    if not (is_in_repository and Path(place, ".git").exists()):
        return IgnoreRules(folder, own, above)
    # The repository's own list is weaker than any .gitignore, so it comes first.
    return IgnoreRules(folder, (*_rules_of(f"{place}/.git/info/exclude"), *own), None)


def _rules_of(file: str) -> tuple[_Rule, ...]:
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(MAX_FILE_BYTES).decode(errors="surrogateescape")
    except OSError:
        return ()
    rules = (_rule(line) for line in text.removeprefix("\ufeff").split("\n"))
    return tuple(rule for rule in rules if rule is not None)


def _rule(line: str) -> _Rule | None:
    """Translate one line; None if it says nothing, or nothing that can be understood."""
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    if not line.endswith("\\ "):
        line = line.rstrip()
    is_negated = line.startswith("!")
    line = line[1:] if is_negated else line
    is_for_folders = line.endswith("/")
    pattern = line[:-1] if is_for_folders else line
    if not pattern:
        return None
    try:
        return _Rule(compile_glob(pattern, is_anchored="/" in pattern), is_negated, is_for_folders)
    except ToolError:
        return None
