"""Which file names belong to a type such as "py", for the search without ripgrep; the same as ripgrep's own list."""

UNKNOWN_TYPE = "unrecognized file type"
"""How both search programs begin what they say of a type that they do not know."""

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
