#!/bin/sh
# Measures the capture index: load, size, lookups, scans, memory; then lookups over HTTP with 16 connections.
#
#   bench/index.sh [MILLIONS…]        20 is the size that the goals speak of; 5 10 20 40 show the growth
#
# Lines such as a national archive has are made once under bench/data (330 MB per million). Processor seconds are given
# beside wall time: they say how fast it is when others use the machine too.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 1 5
cargo build --profile dist --quiet -p grange-index --example index_bench
cargo build --profile dist --quiet -p grange-replay --example cdx_http
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
bench="$target/dist/examples/index_bench"
mkdir -p bench/data
for millions in "$@"; do
    lines="bench/data/index-$millions.cdxj"
    [ -f "$lines" ] || "$bench" make "${millions}000000" "$lines"
    folder=$(mktemp -d bench/data/index.XXXXXX)
    echo "== $millions million captures; load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) cores"
    "$bench" run "$lines" "$folder/bench"
    "$target/dist/examples/cdx_http" "$folder/bench" "$lines" 16 10
    rm -rf "$folder"
done
