#!/bin/sh
# Installs the Debian packages that the arena needs and that are missing:
# bubblewrap (the sandbox), python3 in /usr/bin (the interpreter agents get) and
# the venv module. Says what it installs; does nothing when nothing is missing.
set -eu

missing=""
command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"
[ -x /usr/bin/python3 ] || missing="$missing python3"
"${PYTHON:-python3}" -c 'import ensurepip' >/dev/null 2>&1 || missing="$missing python3-venv"
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "Missing:$missing. Install them with this system's package manager, then try again." >&2
  exit 1
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || { echo "Missing:$missing. As root: apt-get install$missing" >&2; exit 1; }
  as_root="sudo"
fi
echo "Installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # the list is split on purpose
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 || {
  $as_root apt-get update -qq
  $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
}
