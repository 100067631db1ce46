#!/usr/bin/env bash
# A SWAP server beside nginx on the same files, one worker each, wrk on loopback; ratios in one run:
#   get       random 4 KiB files out of 100,000                    goal 1.0 of nginx, floor 0.8
#   redirect  answers for files that another server keeps          goal 1.0 of nginx `return 302`, floor 0.8
#   large     100 MB files                                         goal 0.9 of nginx
#   put       4 KiB, 16 clients, each durable                      goal 5,000/s
#   putlarge  100 MB                                               goal 0.7 of cp + sync + md5sum
#   idle      10,000 idle connections                              goal under 200 MB
#   bench/swap.sh [get redirect large put putlarge idle]
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/sbin"
parts=("$@"); [ "${#parts[@]}" -gt 0 ] || parts=(get redirect large put putlarge idle)
for tool in nginx wrk curl; do
  command -v "$tool" >/dev/null || { echo "missing: $tool (apt-get install nginx-light wrk curl)" >&2; exit 1; }
done
target=${CARGO_TARGET_DIR:-target}/release/examples
cargo build --quiet --release -p grange-swap --example swap_server --example swap_load
seconds=${SECONDS_EACH:-5}
files=${FILES:-100000}
folder=$(mktemp -d "${TMPDIR:-/tmp}/grange-swap-bench.XXXXXX")
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

nginx_port=$(free_port)
start_nginx() {
  mkdir -p "$folder/nginx"
  cat >"$folder/nginx/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $folder/nginx/pid; error_log $folder/nginx/error.log;
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
  for _ in $(seq 100); do curl -s -o /dev/null "http://127.0.0.1:$nginx_port/" && break; sleep 0.1; done
}

lua() { # lua PATTERN COUNT: random names
  cat <<LUA
math.randomseed(os.time())
request = function()
  local n = math.random(0, $2 - 1)
  return wrk.format("GET", string.format("$1", n % 100, n))
end
LUA
}
rate() { wrk -t1 -c32 -d"${seconds}s" -s "$1" "http://$2" | awk '/Requests\/sec/ { print $2 } /Non-2xx/ { print "errors: " $0 >"/dev/stderr" }'; }
ratio() { awk -v a="$2" -v b="$3" -v what="$1" -v goal="$4" 'BEGIN { printf "%s: grange %.0f, nginx %.0f per second; ratio %.2f (goal %s)\n", what, a, b, a / b, goal }'; }
best() { # best LUA GRANGE NGINX: three rounds of each in turn, the best of both into a and b
  a=0; b=0
  for _ in 1 2 3; do
    local x y; x=$(rate "$1" "$2"); y=$(rate "$1" "$3")
    a=$(awk -v a="$a" -v x="$x" 'BEGIN { print (x > a) ? x : a }'); b=$(awk -v a="$b" -v x="$y" 'BEGIN { print (x > a) ? x : a }')
  done
}

serve one "$folder/disk"
"$target/swap_load" create "$one" bench 1

get() {
  echo "== GET of random 4 KiB files, one worker each"
  "$target/swap_load" put "$one" bench "$files" 4096 16 small
  start_nginx
  lua "/get/bench/small/%02d/%d" "$files" >"$folder/get.lua"
  # Both read every file once before anything is measured.
  wrk -t1 -c32 -d3s -s "$folder/get.lua" "http://$one" >/dev/null
  best "$folder/get.lua" "$one" "127.0.0.1:$nginx_port"
  ratio "4 KiB files" "$a" "$b" 1.0
}

redirect() {
  echo "== redirects"
  [ -e "$folder/nginx/pid" ] || start_nginx
  serve two "$folder/two" -- "$one"
  for _ in $(seq 100); do
    [ "$(curl -s -o /dev/null -w '%{http_code}' "http://$two/get/bench/small/00/0")" = 302 ] && break; sleep 0.1
  done
  lua "/get/bench/small/%02d/%d" 1000 >"$folder/redirect.lua"
  lua "/away/bench/small/%02d/%d" 1000 >"$folder/away.lua"
  a=0; b=0
  for _ in 1 2 3; do
    x=$(wrk -t1 -c32 -d"${seconds}s" -s "$folder/redirect.lua" "http://$two" | awk '/Requests\/sec/ { print $2 }')
    y=$(wrk -t1 -c32 -d"${seconds}s" -s "$folder/away.lua" "http://127.0.0.1:$nginx_port" | awk '/Requests\/sec/ { print $2 }')
    a=$(awk -v a="$a" -v x="$x" 'BEGIN { print (x > a) ? x : a }'); b=$(awk -v a="$b" -v x="$y" 'BEGIN { print (x > a) ? x : a }')
  done
  ratio redirects "$a" "$b" 1.0
}

large() {
  echo "== GET of 100 MB files"
  [ -e "$folder/nginx/pid" ] || start_nginx
  head -c 100000000 /dev/urandom >"$folder/large"
  curl -sS -f -T "$folder/large" "http://$one/put/bench/large"
  printf 'request = function() return wrk.format("GET", "/get/bench/large") end\n' >"$folder/large.lua"
  best "$folder/large.lua" "$one" "127.0.0.1:$nginx_port"
  awk -v a="$a" -v b="$b" 'BEGIN { printf "100 MB files: grange %.2f, nginx %.2f GB/s; ratio %.2f (goal 0.9)\n", a / 10, b / 10, a / b }'
}

put() {
  echo "== PUT of 4 KiB by 16 clients, each durable (goal 5,000/s)"
  for round in 1 2 3; do "$target/swap_load" put "$one" bench 20000 4096 16 "put$round"; done
}

putlarge() {
  echo "== PUT of 100 MB against cp + sync + md5sum"
  head -c 100000000 /dev/urandom >"$folder/sent"
  local TIMEFORMAT=%R best_put='' best_shell='' took
  for round in 1 2 3; do
    took=$( { time curl -sS -f -T "$folder/sent" "http://$one/put/bench/sent$round"; } 2>&1 )
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
  "$target/swap_load" idle "$calm" 10000 <"$folder/hold" >"$folder/idle.out" & local holder=$!
  exec 9>"$folder/hold"
  for _ in $(seq 300); do [ -s "$folder/idle.out" ] && break; sleep 0.1; done
  cat "$folder/idle.out"
  awk '/VmRSS/ { printf "resident memory of the server: %.0f MB\n", $2 / 1024 }' "/proc/$calm_pid/status"
  exec 9>&-
  wait "$holder" || true
}

for part in "${parts[@]}"; do "$part"; done
