#!/usr/bin/env bash
# A SWAP server beside nginx on the same files, one worker each, wrk on loopback; ratios in one run:
#   get       random 4 KiB files out of 100,000                    goal 1.0 of nginx, floor 0.8
#   redirect  answers for files that another server keeps          goal 1.0 of nginx `return 302`, floor 0.8
#   large     100 MB files                                         goal 0.9 of nginx
#   put       4 KiB, 16 clients, each durable                      goal 5,000/s
#   putlarge  100 MB                                               goal 0.7 of cp + sync + md5sum
#   idle      10,000 idle connections                              goal under 200 MB
# Beside the rates stands the processor time per answer of each, which a busy machine does not change much: a worker
# that has a processor to itself answers one million over that many times a second.
#   bench/swap.sh [get redirect large put putlarge idle]
# Takes nginx, wrk, curl and python3: apt-get install nginx-light wrk curl python3
# SECONDS_EACH (5) per round, ROUNDS (3) of which the best counts, FILES (100000), BENCH_DIR (TMPDIR or /tmp) for 1.5 GB.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/sbin"
parts=("$@"); [ "${#parts[@]}" -gt 0 ] || parts=(get redirect large put putlarge idle)
missing=()
for tool in nginx wrk curl python3; do command -v "$tool" >/dev/null || missing+=("$tool"); done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "SKIPPED: bench/swap.sh measures nothing without ${missing[*]} (apt-get install nginx-light wrk curl python3)" >&2
  exit "${BENCH_SKIP_CODE:-0}"
fi
target=${CARGO_TARGET_DIR:-target}/dist/examples
[ -n "${SKIP_BUILD:-}" ] || cargo build --quiet --profile dist -p grange-swap --example swap_server # the very server of `grange swap serve`, without the rest
seconds=${SECONDS_EACH:-5}
files=${FILES:-100000}
rounds=${ROUNDS:-3}
folder=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/grange-swap-bench.XXXXXX")
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
head -c 32 /dev/urandom | base64 >"$folder/key"
export SWAP_KEY_FILE="$folder/key"

serve() { # serve NAME PARTITION… [-- PEER…]: sets the variable NAME to the address
  local name=$1; shift
  local address; address=127.0.0.1:$(free_port)
  "$target/swap_server" "$address" "$@" >"$folder/$name.out" 2>"$folder/$name.log" &
  pids+=($!)
  for _ in $(seq 100); do [ -s "$folder/$name.out" ] && break; sleep 0.1; done
  [ -s "$folder/$name.out" ] || { cat "$folder/$name.log" >&2; exit 1; }
  printf -v "$name" %s "$address"
  printf -v "${name}_pid" %s "${pids[-1]}"
}

nginx_port=$(free_port) nginx_pid=
start_nginx() { # once; nginx_pid is its worker
  [ -z "$nginx_pid" ] || return 0
  mkdir -p "$folder/nginx"
  cat >"$folder/nginx/nginx.conf" <<CONF
user root; daemon off; worker_processes 1; pid $folder/nginx/pid; error_log $folder/nginx/error.log;
events { worker_connections 20000; }
http {
  access_log off; sendfile on; keepalive_requests 1000000000; types { text/plain txt; }
  client_body_temp_path $folder/nginx/body; proxy_temp_path $folder/nginx/proxy; fastcgi_temp_path $folder/nginx/fastcgi;
  uwsgi_temp_path $folder/nginx/uwsgi; scgi_temp_path $folder/nginx/scgi;
  server {
    listen 127.0.0.1:$nginx_port;
    location /get/ { alias $folder/disk/; }
    location /away/ { return 302 http://127.0.0.1:1\$request_uri; }
  }
}
CONF
  nginx -p "$folder/nginx" -c "$folder/nginx/nginx.conf" & pids+=($!)
  local master=$!
  for _ in $(seq 100); do curl -s -o /dev/null "http://127.0.0.1:$nginx_port/" && break; sleep 0.1; done
  nginx_pid=$(cat "/proc/$master/task/$master/children"); nginx_pid=${nginx_pid%% *}
}

# What wrk counted, for `one`; connections differ in number but not in kind.
tally='done = function(s) print(string.format("tally %d %d %d %d", s.requests, s.bytes, s.duration, s.errors.status)) end'
lua() { # lua PATTERN COUNT: random names
  cat <<LUA
math.randomseed(os.time())
request = function()
  local n = math.random(0, $2 - 1)
  return wrk.format("GET", string.format("$1", n % 100, n))
end
$tally
LUA
}
# Processor time of a process so far, in microseconds, all threads.
cpu() { awk -v tick="$(getconf CLK_TCK)" '{ sub(/^.*\) /, ""); printf "%.0f", ($12 + $13) * 1000000 / tick }' "/proc/$1/stat"; }
# one LUA ADDRESS PID: answers (LARGE: MB) per second, and processor microseconds of the server for each
one() {
  local before after; before=$(cpu "$3")
  wrk -t1 -c"${CONNECTIONS:-32}" -d"${seconds}s" -s "$1" "http://$2" >"$folder/wrk.out"
  after=$(cpu "$3")
  awk -v used=$((after - before)) -v large="${LARGE:-0}" '$1 == "tally" {
    n = large ? $3 / 1000000 : $2
    printf "%.2f %.2f\n", n * 1000000 / $4, used / n
  }' "$folder/wrk.out"
}
# side_by_side WHAT GOAL UNIT LUA ADDRESS PID LUA ADDRESS PID: rounds in turn, the best of both
side_by_side() {
  local ours=() theirs=()
  for _ in $(seq "$rounds"); do ours+=("$(one "$4" "$5" "$6")"); theirs+=("$(one "$7" "$8" "$9")"); done
  { printf 'grange %s\n' "${ours[@]}"; printf 'nginx %s\n' "${theirs[@]}"; } | awk -v what="$1" -v goal="$2" -v unit="$3" '
    $2 > rate[$1] { rate[$1] = $2 } !($1 in used) || $3 < used[$1] { used[$1] = $3 }
    END {
      printf "%s: grange %.0f, nginx %.0f %s; ratio %.2f (goal %s)\n", what, rate["grange"], rate["nginx"], unit, rate["grange"] / rate["nginx"], goal
      printf "%s: processor time for each: grange %.1f, nginx %.1f us; ratio %.2f\n", what, used["grange"], used["nginx"], used["nginx"] / used["grange"]
    }'
}

serve here "$folder/disk"
curl -sS -f -o /dev/null -H "Content-Type: application/json" -d '{"namespace":"bench","slices":1,"public":true}' "http://$here/admin/v1/collections"

answers() { # answers ADDRESS PATH STATUS: or the measurement would be of errors
  local status; status=$(curl -s -o /dev/null -w '%{http_code}' "http://$1$2")
  [ "$status" = "$3" ] || { echo "http://$1$2 answered $status, not $3" >&2; exit 1; }
}

get() {
  echo "== GET of random 4 KiB files, one worker each"
  python3 bench/swap.py fill "$folder/disk/bench/small" "$files"
  start_nginx
  lua "/get/bench/small/%02d/%d" "$files" >"$folder/get.lua"
  answers "$here" /get/bench/small/01/1 200; answers "127.0.0.1:$nginx_port" /get/bench/small/01/1 200
  # Both read every file once before anything is measured.
  find "$folder/disk/bench/small" -type f -exec cat {} + >/dev/null
  side_by_side "4 KiB files" 1.0 "per second" "$folder/get.lua" "$here" "$here_pid" "$folder/get.lua" "127.0.0.1:$nginx_port" "$nginx_pid"
}

redirect() {
  echo "== redirects"
  start_nginx
  serve other "$folder/other" -- "$here"
  for _ in $(seq 100); do
    [ "$(curl -s -o /dev/null -w '%{http_code}' "http://$other/get/bench/small/00/0")" = 302 ] && break; sleep 0.1
  done
  answers "$other" /get/bench/small/01/1 302; answers "127.0.0.1:$nginx_port" /away/bench/small/01/1 302
  lua "/get/bench/small/%02d/%d" 1000 >"$folder/redirect.lua"
  lua "/away/bench/small/%02d/%d" 1000 >"$folder/away.lua"
  side_by_side redirects 1.0 "per second" "$folder/redirect.lua" "$other" "$other_pid" "$folder/away.lua" "127.0.0.1:$nginx_port" "$nginx_pid"
}

large() {
  echo "== GET of 100 MB files"
  start_nginx
  head -c 100000000 /dev/urandom >"$folder/large"
  curl -sS -f -T "$folder/large" "http://$here/put/bench/large"
  printf 'request = function() return wrk.format("GET", "/get/bench/large") end\n%s\n' "$tally" >"$folder/large.lua"
  LARGE=1 CONNECTIONS=4 side_by_side "100 MB files" 0.9 "MB per second" "$folder/large.lua" "$here" "$here_pid" "$folder/large.lua" "127.0.0.1:$nginx_port" "$nginx_pid"
}

put() {
  echo "== PUT of 4 KiB by 16 clients, each durable"
  cat >"$folder/put.lua" <<LUA
local n, round = 0, os.time()
local body = string.rep("0123456789abcdef", 256)
request = function()
  n = n + 1
  return wrk.format("PUT", string.format("/put/bench/put/%d/%02d/%d", round, n % 100, n), nil, body)
end
$tally
LUA
  for _ in $(seq "$rounds"); do
    CONNECTIONS=16 one "$folder/put.lua" "$here" "$here_pid" | awk '{ printf "4 KiB: %.0f uploads/s, processor %.0f us each (goal 5000/s)\n", $1, $2 }'
    grep -q 'tally.* 0$' "$folder/wrk.out" || { echo "uploads failed: $(grep tally "$folder/wrk.out")" >&2; exit 1; }
  done
  # Beside it, what the disk does without a server: 16 writers, each file and each folder synced.
  python3 bench/swap.py sync "$folder/raw" 4000
}

putlarge() {
  echo "== PUT of 100 MB against cp + sync + md5sum"
  head -c 100000000 /dev/urandom >"$folder/sent"
  local TIMEFORMAT=%R best_put='' best_shell='' took
  for round in 1 2 3; do
    took=$( { time curl -sS -f -T "$folder/sent" "http://$here/put/bench/sent$round"; } 2>&1 )
    best_put=$(printf '%s\n' $best_put "$took" | sort -n | head -1)
    took=$( { time { cp "$folder/sent" "$folder/copy$round"; sync "$folder/copy$round"; md5sum "$folder/copy$round" >/dev/null; }; } 2>&1 )
    best_shell=$(printf '%s\n' $best_shell "$took" | sort -n | head -1)
  done
  awk -v a="$best_put" -v b="$best_shell" 'BEGIN { printf "100 MB: PUT %.2f s, shell %.2f s; ratio %.2f (goal 0.7)\n", a, b, b / a }'
}

idle() {
  echo "== 10,000 idle connections (goal under 200 MB)"
  ulimit -n 65536 2>/dev/null || true
  serve calm "$folder/calm"
  mkfifo "$folder/hold"
  python3 bench/swap.py idle "$calm" 10000 <"$folder/hold" >"$folder/idle.out" & local holder=$!
  exec 9>"$folder/hold"
  for _ in $(seq 300); do [ -s "$folder/idle.out" ] && break; sleep 0.1; done
  cat "$folder/idle.out"
  awk '/VmRSS/ { printf "resident memory of the server: %.0f MB\n", $2 / 1024 }' "/proc/$calm_pid/status"
  exec 9>&-
  wait "$holder" || true
}

for part in "${parts[@]}"; do "$part"; done
