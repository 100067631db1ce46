"""The measuring part of cdx.sh: runs the commands in turn, compares their output, prints a table."""

import filecmp
import os
import subprocess
import sys
import tempfile
import time

PEER, EXAMPLES, FILE, RUNS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
OURS = os.path.join(EXAMPLES, "index")
COMMANDS = {
    "cdxj-indexer": [PEER, FILE],
    "ours, 1 thread": [OURS, "--ia", FILE],
    "ours, 2 threads": [OURS, "--ia", "-t", "2", FILE],
    "ours, 1 thread, sorted": [OURS, "--ia", "-s", FILE],
}


def run(command, out):
    """Wall seconds, processor seconds, peak memory in MB and what was said on standard error."""
    with open(out, "wb") as stdout, tempfile.TemporaryFile() as stderr:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        said = stderr.read().decode(errors="replace")
    if process.returncode:
        sys.exit("%s failed: %s" % (command[0], said))
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said


best, records = {}, 0
with tempfile.TemporaryDirectory() as out_dir:
    outs = {name: os.path.join(out_dir, str(i)) for i, name in enumerate(COMMANDS)}
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            wall, cpu, memory, said = run(command, outs[name])
            old = best.get(name, (wall, cpu, memory))
            best[name] = (min(wall, old[0]), min(cpu, old[1]), max(memory, old[2]))
            if command[0] == OURS:
                records = int(said.split(":")[-1].split()[0])
    same = filecmp.cmp(outs["cdxj-indexer"], outs["ours, 1 thread"], shallow=False)
    same_threads = filecmp.cmp(outs["ours, 1 thread"], outs["ours, 2 threads"], shallow=False)
    lines = sum(1 for _ in open(outs["cdxj-indexer"], "rb"))

load = os.getloadavg()[0]
print("%s: %.0f MB, %d records, %d lines; %d cores, load %.1f" % (FILE, os.path.getsize(FILE) / 1e6, records, lines, os.cpu_count(), load))
print("| command | wall s | records/s | x peer | cpu s | records/cpu s | x peer (cpu) | peak MB |")
print("|---|---|---|---|---|---|---|---|")
peer = best["cdxj-indexer"]
for name, (wall, cpu, memory) in best.items():
    print("| %s | %.2f | %.0f | %.1f | %.2f | %.0f | %.1f | %.0f |" % (name, wall, records / wall, peer[0] / wall, cpu, records / cpu, peer[1] / cpu, memory))
print("two threads are %.2f times as fast as one (wall)" % (best["ours, 1 thread"][0] / best["ours, 2 threads"][0]))
print("output equal to cdxj-indexer's:", "yes" if same else "NO")
print("output of two threads equal to that of one:", "yes" if same_threads else "NO")
sys.exit(0 if same and same_threads else 1)
