#!/bin/sh
# Harvests the same pages with sickle, with oaipmh-scythe and with ours, one after the other, and prints the ratios. The
# others only read the records; ours compares and stores them as files and rows, synced page by page.
#
#   bench/oai.sh [RECORDS] [PER_PAGE]
set -eu
cd "$(dirname "$0")/.."
venv=bench/.venv
records=${1:-20000}
per_page=${2:-100}

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import sickle, oaipmh_scythe' 2>/dev/null ||
    "$venv/bin/pip" install --quiet sickle==0.7.0 oaipmh-scythe==0.16.0
cargo build --release --quiet -p grange
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
exec "$venv/bin/python" bench/oai.py "$target/release/grange" "$records" "$per_page"
