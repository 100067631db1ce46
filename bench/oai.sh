#!/bin/sh
# Harvests one repository with sickle, with oaipmh-scythe and with ours, and prints the ratios: records per second.
#
#   bench/oai.sh [RECORDS] [RUNS]
#
# The pages (100 records of oai_dc each) are made once and served from memory over loopback, so that the client is
# what is measured. The peers only make objects; ours parses, compares, and stores every record as a file and a row.
# Then: parsing alone, and filter, normalizer and XML Schema alone, on one core.
set -eu
cd "$(dirname "$0")/.."
records=${1:-20000} runs=${2:-3}
venv=bench/.venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import sickle, oaipmh_scythe' 2>/dev/null \
    || "$venv/bin/pip" install --quiet sickle==0.7.0 oaipmh-scythe==0.16.0
cargo build --release --quiet --bin grange
cargo build --release --quiet -p oaipmh --example parse_speed
cargo build --release --quiet -p grange-oai --example rules_speed
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
"$venv/bin/python" bench/oai.py run "$target/release/grange" "$records" "$runs"
echo "== parsing alone"
"$target/release/examples/parse_speed"
echo "== rules alone"
"$target/release/examples/rules_speed"
