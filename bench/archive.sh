#!/usr/bin/env bash
# The archive beside plain tools on the same files, ratios in one run:
#   store    1 GiB in 8 files to two disk replicas and a checksum replica, against cp twice + sync + sha512sum of both
#   audit    2 GiB read from the disk, against openssl dgst -sha512 on the same files in memory
#   small    100,000 files of 4 KiB listed and audited; ranges of 4 KiB over loopback
#   tables   a million files on three replicas: overview and vote, on SQLite and PostgreSQL
# Wall seconds depend on what else the machine does; processor seconds (user + system) much less. Both are printed.
#   bench/archive.sh [store audit small tables]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}/dist/examples
parts=("$@"); [ "${#parts[@]}" -gt 0 ] || parts=(store audit small tables)
folder=$(mktemp -d "${TMPDIR:-/tmp}/grange-bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT
TIMEFORMAT='%R %U %S'

timed() { # timed FILE COMMAND...: wall and processor seconds into FILE
  local out=$1; shift
  { time "$@" >/dev/null 2>"$folder/errors"; } 2>"$out" || { cat "$folder/errors" >&2; exit 1; }
}

by_shell() {
  mkdir -p "$folder/a" "$folder/b"
  cp "$folder"/in/* "$folder/a/"
  cp "$folder"/in/* "$folder/b/"
  sync "$folder"/a/* "$folder"/b/* "$folder/a" "$folder/b"
  sha512sum "$folder"/a/* "$folder"/b/*
}

store() {
  echo "== store 1 GiB in 8 files, two disk replicas and a checksum replica; three rounds"
  cargo build --quiet --profile dist -p grange-archive --example store_speed
  mkdir "$folder/in"
  for n in 1 2 3 4 5 6 7 8; do head -c 128M /dev/urandom >"$folder/in/$n.warc"; done
  for round in 1 2 3; do
    timed "$folder/shell.$round" by_shell; rm -rf "$folder/a" "$folder/b"
    timed "$folder/grange.$round" "$target/store_speed" "$folder/data" "$folder"/in/*; rm -rf "$folder/data"
  done
  cat "$folder"/shell.? >"$folder/shell"; cat "$folder"/grange.? >"$folder/grange"
  awk 'FNR == 1 { side++ }
    { wall[side, FNR] = $1; cpu[side, FNR] = $2 + $3
      if (FNR == 1 || $1 < best[side]) best[side] = $1
      if (FNR == 1 || $2 + $3 < least[side]) least[side] = $2 + $3 }
    END {
      for (n = 1; n <= 3; n++) printf "round %d: shell %.2f s (%.2f processor), grange %.2f s (%.2f processor)\n", n, wall[1, n], cpu[1, n], wall[2, n], cpu[2, n]
      printf "ratio of the best: %.2f by the clock (goal 0.6), %.2f by processor time\n", best[1] / best[2], least[1] / least[2] }' \
    "$folder/shell" "$folder/grange"
  rm -rf "$folder/in"
}

audit() {
  echo "== audit 2 GiB (goal 0.9 per core used)"
  cargo build --quiet --profile dist -p grange-blob --example audit_speed
  "$target/audit_speed" "$folder" 2048 8
}

small() {
  echo "== 100,000 files of 4 KiB (goal 5,000/s), ranges of 4 KiB (goal 5,000/s)"
  cargo build --quiet --profile dist -p grange-blob --example small_files --example range_reads
  "$target/small_files" "$folder" 100000 4096
  "$target/range_reads" "$folder" 100000
}

tables() {
  echo "== a million files on three replicas (overview below 200 ms, vote below 60 s)"
  cargo build --quiet --profile dist -p grange-db --example archive_scale
  "$target/archive_scale" "sqlite:$folder/scale.db"
  SERVICES=postgres SERVICES_DURABLE=1 scripts/with-services bash -c "'$target/archive_scale' \"\$GRANGE_TEST_POSTGRES_URL\""
}

for part in "${parts[@]}"; do "$part"; done
