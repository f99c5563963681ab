#!/bin/sh
# Once, when the database is made: the arena's own login, which owns nothing and may only add
# and read rows (docs/operators.md, "The database's guard"). The owner's login migrates.
set -eu
: "${ARENA_APP_PASSWORD:?set ARENA_POSTGRES_PASSWORD in .env}"
# Text goes in as a value: \set and :'password' quote it.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set password="$ARENA_APP_PASSWORD" \
  --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE arena_writer NOLOGIN;
CREATE ROLE arena_app LOGIN PASSWORD :'password' IN ROLE arena_writer;
SQL
