#!/bin/sh
# Indexes one file with cdxj-indexer and with ours and prints the ratios. Both outputs must be the same.
#
#   bench/cdx.sh [FILE.warc.gz] [RUNS]
#
# Without a file a corpus of 320 MB is made once under bench/data. Each command is run RUNS times (3), taking
# turns; the best wall time and the best processor time count, because other load only ever adds to them.
set -eu
cd "$(dirname "$0")/.."
venv=bench/.venv
file=${1:-bench/data/cdx.warc.gz}
runs=${2:-3}

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
[ -x "$venv/bin/cdxj-indexer" ] || "$venv/bin/pip" install --quiet cdxj-indexer==1.5.0
if [ ! -f "$file" ]; then
    mkdir -p "$(dirname "$file")"
    python3 bench/corpus.py "$file" 320
fi
cargo build --profile dist --quiet -p cdx --example index -p urlkey --example keys
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
exec python3 bench/cdx.py "$venv/bin/cdxj-indexer" "$target/dist/examples" "$file" "$runs"
