#!/usr/bin/env bash
# Measures replay beside pywb, in one run: raw captures, rewritten pages and CDX answers of one small collection.
#
#   bench/replay.sh [FILE.warc.gz [URL [TIME]]]      default: pywb's sample of iana.org, a page of 5.7 KB
#
# Then the first byte of a rewritten page of 30 KB (archive.org of 2013), asked for by one reader.
#
# pywb under gunicorn with two gevent workers beside one process of Grange, each asked by wrk over 8 connections. Requests by
# the clock depend on who else uses the machine (wrk does, too); the processor time of the server per request does not.
set -euo pipefail
cd "$(dirname "$0")/.."
file=${1:-../shared/warc-samples/pywb/iana.warc.gz}
url=${2:-http://www.iana.org/}
time=${3:-20140126200624}
page=../shared/warc-samples/webarchive-commons/IAH-urls-wget.warc.gz
page_path=/local/20131021215309mp_/https://archive.org/
seconds=${SECONDS_EACH:-10}
venv=$PWD/bench/.venv/bin
[ -x "$venv/python" ] || python3 -m venv bench/.venv
"$venv/python" -c 'import pywb, gunicorn, gevent, packaging' 2>/dev/null \
    || "$venv/pip" install --quiet pywb==2.10.0 gunicorn==27.0.0 packaging 'setuptools<81'
grange=${GRANGE:-}
if [ -z "$grange" ]; then
    cargo build --profile dist --quiet --bin grange
    grange=${CARGO_TARGET_DIR:-target}/dist/grange
fi
file=$(realpath "$file")
page=$(realpath "$page")
folder=$(mktemp -d)
pids=
stop() { for pid in $pids; do kill "$pid" 2>/dev/null || true; done; rm -rf "$folder"; }
trap stop EXIT
free_port() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }
await() { for _ in $(seq 300); do curl -sf -o /dev/null "$1" && return; sleep 0.1; done; echo "no answer: $1" >&2; exit 1; }

mkdir -p "$folder/pywb/collections"
(cd "$folder/pywb" && "$venv/wb-manager" init local >/dev/null 2>&1 && "$venv/wb-manager" add local "$file" "$page" >/dev/null 2>&1)
theirs=$(free_port)
(cd "$folder/pywb" && exec "$venv/gunicorn" -w 2 -k gevent -b "127.0.0.1:$theirs" pywb.apps.wayback >"$folder/pywb.log" 2>&1) &
their_pid=$!; pids="$pids $their_pid"
ours=$(free_port)
"$grange" replay "$file" "$page" --listen "127.0.0.1:$ours" >"$folder/grange.log" 2>&1 &
our_pid=$!; pids="$pids $our_pid"
await "http://127.0.0.1:$theirs/local/"
await "http://127.0.0.1:$ours/local/"

# Clock ticks of a process and its workers, a hundredth of a second each.
ticks() {
    sum=0
    for pid in "$1" $(pgrep -P "$1" || true); do
        sum=$((sum + $(cut -d' ' -f14-15 "/proc/$pid/stat" | tr ' ' '+')))
    done
    echo "$sum"
}
# ask NAME PID PORT PATH: requests per second by the clock, and microseconds of the server's processor for each.
ask() {
    curl -sf -o /dev/null "http://127.0.0.1:$3$4" || { echo "$1: $4 is not answered" >&2; exit 1; }
    wrk -t1 -c8 -d2s "http://127.0.0.1:$3$4" >/dev/null # until everything is loaded
    before=$(ticks "$2")
    wrk -t1 -c8 -d"${seconds}s" "http://127.0.0.1:$3$4" >"$folder/wrk"
    after=$(ticks "$2")
    count=$(awk '/requests in/ {print $1}' "$folder/wrk")
    rate=$(awk '/^Requests\/sec/ {print $2}' "$folder/wrk")
    bad=$(awk '/Non-2xx/ {print $NF}' "$folder/wrk"); [ -z "$bad" ] || echo "$1: $bad answers were errors" >&2
    cost=$(awk -v t=$((after - before)) -v n="$count" 'BEGIN {printf "%.1f", t * 10000 / n}')
    printf '  %-7s %10s requests/s   %10s µs of processor each\n' "$1" "$rate" "$cost"
}
echo "$(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg); $(basename "$file") $url"
for what in "raw id_ /local/${time}id_/$url" "rewritten mp_ /local/${time}mp_/$url" "cdx - /local/cdx?url=$url&output=json"; do
    set -- $what
    echo "$1"
    ask pywb "$their_pid" "$theirs" "$3"; pywb=$cost; slow=$rate
    ask grange "$our_pid" "$ours" "$3"
    awk -v a="$pywb" -v b="$cost" -v c="$slow" -v d="$rate" \
        'BEGIN {printf "  ratio   %10.1f × by the clock   %8.1f × by processor time\n", d / c, a / b}'
done
echo "first byte, $page_path"
python3 bench/first_byte.py pywb "$theirs" "$page_path" 300
python3 bench/first_byte.py grange "$ours" "$page_path" 3000
