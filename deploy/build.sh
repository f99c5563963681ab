#!/usr/bin/env bash
# Builds the images where a build has no network: wheels are fetched here, by this machine's pip
# and its index, and go into the build's context.
#
#   bash deploy/build.sh [BASE] [TARGET]     (default: sn15-arena/base:local arena)
#
# BASE must have the interpreter version that the wheels are fetched with ($PYTHON, python3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base=${1:-sn15-arena/base:local}
target=${2:-arena}
python=${PYTHON:-python3}
wheelhouse=build/wheelhouse
mkdir -p "$wheelhouse"

# The lock decides what has to be there; what is there already is not asked for again.
if ! cmp -s requirements/base.txt "$wheelhouse/.lock"; then
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --dest "$wheelhouse" -r requirements/base.txt pip
  cp requirements/base.txt "$wheelhouse/.lock"
fi

context=$(mktemp -d "${TMPDIR:-/tmp}/arena-build.XXXXXX")
trap 'rm -rf "$context"' EXIT
git ls-files -z -- pyproject.toml README.md LICENSE requirements deploy scoring sandbox judge arena \
  corpus_export training neurons migrations | xargs -0 cp --parents -t "$context"
mkdir -p "$context/deploy/wheelhouse"
# Only what the lock names: an old wheel in the house is no second choice.
cp "$wheelhouse"/*.whl "$context/deploy/wheelhouse/"
docker build --quiet --network none --build-arg BASE="$base" --target "$target" \
  --file deploy/Dockerfile --tag "sn15-arena/$target:local" "$context"
