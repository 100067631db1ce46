#!/bin/sh
# Crawls one synthetic web with wget and with ours and prints the ratios: URLs per second and processor time per URL.
#
#   bench/crawl.sh [HOSTS] [PAGES] [RUNS]
#
# Both write WARC files with requests and responses, packed at gzip level 6, without politeness; ours also writes
# metadata records and keeps its frontier on disk. wget has one connection, ours as many as there are hosts. The
# server runs on the same two cores, and its time is not counted to either.
set -eu
cd "$(dirname "$0")/.."
hosts=${1:-50} pages=${2:-200} runs=${3:-3}
command -v wget >/dev/null || { echo "crawl: SKIPPED, wget is not installed" >&2; exit 0; }
cargo build --release --quiet --bin grange
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
exec python3 bench/crawl.py "$target/release/grange" "$hosts" "$pages" "$runs"
