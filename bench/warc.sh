#!/bin/sh
# Compares libs/warc with its peers over one file and prints a table of ratios.
#
# usage: bench/warc.sh [FOLDER]     FOLDER keeps the corpus, the builds and the Python peers between runs.
# Best of five runs each, in seconds of processor time: the machine is shared, the work is on one thread.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-${TMPDIR:-/tmp}/grange-bench}
mkdir -p "$folder"
corpus=$folder/bench.warc.gz
python=$folder/venv/bin/python
runs=${RUNS:-5}

[ -x "$python" ] || { python3 -m venv "$folder/venv" && "$python" -m pip -q install warcio fastwarc; }
[ -s "$corpus" ] || python3 "$here/corpus.py" "$corpus" 310
(cd "$here/peers" && CARGO_TARGET_DIR="$folder/peers" cargo build --release --quiet)
peers=$folder/peers/release/peers

# best COMMAND...: "records good seconds" of the fastest run.
best() {
    i=0
    while [ $i -lt "$runs" ]; do
        "$@"
        i=$((i + 1))
    done | awk '{ t = $NF } NR == 1 || t < min { min = t; r = $1; g = $2 } END { print r, g, min }'
}

row() { # name, our result, peer's result, goal
    echo "$2 $3" | awk -v name="$1" -v goal="$4" '{
        printf "%-44s %7d %7d %8.2f %8.2f %7.2f %6s %s\n", name, $1, $4, $3, $6, $6 / $3, goal,
            ($1 == $4 ? "" : "COUNTS DIFFER") ($6 / $3 >= goal ? "" : " BELOW GOAL") }'
}

printf '%-44s %7s %7s %8s %8s %7s %6s\n' "$(basename "$corpus") on one thread" ours peer 'ours s' 'peer s' ratio goal
ours=$(best "$peers" ours "$corpus")
ours_digest=$(best "$peers" ours-digest "$corpus")
row "heads, against the crate fastwarc 2.0" "$ours" "$(best "$peers" fastwarc "$corpus")" 1.2
row "heads, against FastWARC from PyPI" "$ours" "$(best "$python" "$here/peers.py" fastwarc "$corpus")" 1.3
row "payload digests, against FastWARC from PyPI" "$ours_digest" "$(best "$python" "$here/peers.py" fastwarc-digest "$corpus")" 1.3
row "payload digests, against the crate fastwarc" "$ours_digest" "$(best "$peers" fastwarc-digest "$corpus")" 1.0
if [ -n "${WARCIO:-}" ]; then
    row "heads, against warcio" "$ours" "$(RUNS=1 best "$python" "$here/peers.py" warcio "$corpus")" 1
fi

echo
"$peers" write "$corpus" | awk '{
    printf "writing at level 6, MB/s: libdeflate alone %.1f, zlib-rs alone %.1f, our writer %.1f\n", $1, $2, $3
    printf "writer / libdeflate alone: %.2f (goal 0.85)%s\n", $3 / $1, ($3 / $1 >= 0.85 ? "" : " BELOW GOAL") }'
