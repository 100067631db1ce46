#!/bin/sh
# Harvests one repository with sickle, with oaipmh-scythe and with ours, and prints the ratios: records per second, of
# the clock and of processors, and how much memory.
#
#   bench/oai.sh [RECORDS] [RUNS]       without arguments: 20,000 records three times, then 200,000 once
#
# The pages (100 records of oai_dc each) are made once and served from memory over loopback, so that the client is
# what is measured. The peers only make objects; ours parses, compares, and stores every record as a file and a row.
# Then: parsing alone, and filter, normalizer and XML Schema alone, on one core.
# GRANGE=…/oai_speed measures with that example instead of building the whole program.
set -eu
cd "$(dirname "$0")/.."
venv=bench/.venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import sickle, oaipmh_scythe' 2>/dev/null \
    || "$venv/bin/pip" install --quiet sickle==0.7.0 oaipmh-scythe==0.16.0
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
if [ -z "${GRANGE-}" ]; then
    cargo build --profile dist --quiet --bin grange
    GRANGE=$target/dist/grange
fi
if [ $# -gt 0 ]; then
    "$venv/bin/python" bench/oai.py run "$GRANGE" "$1" "${2:-3}"
    exit
fi
cargo build --profile dist --quiet -p oaipmh --example parse_speed
cargo build --profile dist --quiet -p grange-oai --example rules_speed
"$venv/bin/python" bench/oai.py run "$GRANGE" 20000 3
"$venv/bin/python" bench/oai.py run "$GRANGE" 200000 1
echo "== parsing alone"
"$target/dist/examples/parse_speed"
echo "== rules alone"
"$target/dist/examples/rules_speed"
