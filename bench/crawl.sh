#!/bin/sh
# Crawls one synthetic web with wget, with scrapy and with ours and prints the ratios: URLs per second and processor time per URL.
#
#   bench/crawl.sh [HOSTS] [PAGES] [RUNS]
#
# All write WARC files with requests and responses, packed at gzip level 6 (scrapy through warcio, at its default of 9),
# without politeness; ours also writes metadata records and keeps its frontier on disk. wget has one connection, the
# others as many as there are hosts. The server runs on the same two cores, and its time is not counted to any.
set -eu
cd "$(dirname "$0")/.."
hosts=${1:-50} pages=${2:-200} runs=${3:-3}
command -v wget >/dev/null || { echo "crawl: SKIPPED, wget is not installed" >&2; exit 0; }
venv=bench/.venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import scrapy, warcio' 2>/dev/null || "$venv/bin/pip" install --quiet scrapy==2.14.2 warcio==1.8.1
cargo build --profile dist --quiet --bin grange
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
exec "$venv/bin/python" bench/crawl.py "$target/dist/grange" "$hosts" "$pages" "$runs"
