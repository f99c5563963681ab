#!/usr/bin/env bash
# Makes a base for the sandbox image without any image registry: a minimal Debian
# (or Ubuntu) with the full python3, from the packages that apt on this machine is
# set up for, imported into the Docker engine.
#
#   bash .ci/make-base.sh [TAG]      (default TAG: sn15-arena/base:local)
#
# Needs root, debootstrap and an engine. The tree is kept as a tar archive under
# build/, so that a second run takes a second.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tag=${1:-sn15-arena/base:local}
# python3-minimal lacks json and multiprocessing; agents get the whole standard library.
packages=python3

fail() { echo "make-base: $*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || fail "needs root: sudo bash .ci/make-base.sh"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"

# shellcheck disable=SC1091 # a standard file
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[ -n "$codename" ] || fail "/etc/os-release names no VERSION_CODENAME: not a Debian or an Ubuntu"

# The mirror is the one apt uses: the first source of this release with packages of main.
targets=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Identifier: Packages')
mirror=$(awk -v codename="$codename" '$2 == codename && $3 == "main" { print $1; exit }' <<<"$targets")
[ -n "$mirror" ] || fail "apt has no source for $codename main; see /etc/apt/sources.list.d"

archive=build/sandbox-base/$codename-$(dpkg --print-architecture).tar
if [ ! -s "$archive" ]; then
  mkdir -p "$(dirname "$archive")"
  tree=$(mktemp -d "${TMPDIR:-/tmp}/sandbox-base.XXXXXX")
  trap 'rm -rf --one-file-system "$tree"' EXIT
  echo "make-base: debootstrap $codename with $packages"
  if ! debootstrap --variant=minbase --include="$packages" "$codename" "$tree" "$mirror" \
      >"$archive.log" 2>&1; then
    tail -n 20 "$archive.log" >&2
    fail "debootstrap failed; its whole log: $archive.log"
  fi
  # Packages' archives, their lists and documentation are of no use to an agent.
  rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/* "$tree"/usr/share/doc/* \
    "$tree"/usr/share/man/* "$tree"/usr/share/locale/* "$tree"/var/log/*
  tar --create --numeric-owner --one-file-system --directory "$tree" --file "$archive.part" .
  mv "$archive.part" "$archive"
fi
image=$(docker import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' "$archive" "$tag")
echo "make-base: $tag is $image"
