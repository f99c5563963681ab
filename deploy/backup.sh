#!/usr/bin/env bash
# Backup of an arena's database, and back again.
#
#   bash deploy/backup.sh dump FILE       the whole database into FILE, beside it FILE.sha256
#   bash deploy/backup.sh restore FILE    FILE into an empty database
#
# The database is that of ARENA_DATABASE_OWNER_URL, or of ARENA_DATABASE_URL. Dumping stops
# nobody: pg_dump sees one moment. Keys are not in it (ARENA_SECRET_KEYS or secret.key,
# ARENA_BANK_KEY, the hotkey): keep them elsewhere, without them miners' credentials and open
# races' secrets stay shut. Afterwards: arena serve --migrate, then arena records verify.
set -euo pipefail

fail() { echo "backup: $*" >&2; exit 1; }

[ $# -eq 2 ] || fail "usage: bash deploy/backup.sh dump|restore FILE"
url=${ARENA_DATABASE_OWNER_URL:-${ARENA_DATABASE_URL:-}}
[ -n "$url" ] || fail "set ARENA_DATABASE_OWNER_URL or ARENA_DATABASE_URL"
url=${url/#postgresql+asyncpg:/postgresql:}
file=$2

case $1 in
  dump)
    [ ! -e "$file" ] || fail "$file is there already"
    umask 077
    # Whole or not there: a dump that broke off never has the name of one that did not.
    trap 'rm -f "$file.part"' EXIT
    pg_dump --format=custom --compress=6 --no-owner --no-privileges --file "$file.part" "$url"
    sync "$file.part"
    (cd "$(dirname "$file")" && sha256sum "$(basename "$file").part" | sed 's/\.part$//') >"$file.sha256"
    mv "$file.part" "$file"
    echo "backup: $file, $(stat -c %s "$file") bytes"
    ;;
  restore)
    (cd "$(dirname "$file")" && sha256sum --quiet --check "$(basename "$file").sha256") \
      || fail "$file is not what was dumped"
    tables=$(psql --no-psqlrc --tuples-only --no-align --command \
      "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'" "$url")
    [ "$tables" = 0 ] || fail "the database is not empty: records are never put over records"
    # Rights are not in the dump: whoever migrates gives them anew, to the role of this server.
    pg_restore --exit-on-error --single-transaction --no-owner --no-privileges --dbname "$url" "$file"
    echo "backup: restored; now run arena serve --migrate and arena records verify"
    ;;
  *) fail "usage: bash deploy/backup.sh dump|restore FILE" ;;
esac
