"""oai.py GRANGE RECORDS PER_PAGE: see oai.sh."""
import json
import resource
import subprocess
import sys
import tempfile
import time

grange, records, per_page = sys.argv[1], int(sys.argv[2]), sys.argv[3]
SICKLE = "import sys\nfrom sickle import Sickle\nprint(sum(1 for _ in Sickle(sys.argv[1]).ListRecords(metadataPrefix='oai_dc')))"
SCYTHE = (
    "import sys\nfrom oaipmh_scythe import Scythe\nwith Scythe(sys.argv[1]) as scythe:\n"
    "    print(sum(1 for _ in scythe.list_records(metadata_prefix='oai_dc')))"
)


def timed(command):
    start = time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.monotonic() - start, done.stdout


server = subprocess.Popen(
    [sys.executable, "bench/oai_replay.py", str(records), per_page], stdout=subprocess.PIPE, text=True
)
try:
    url = server.stdout.readline().strip()
    rates = {}
    for name, script in [("sickle", SICKLE), ("oaipmh-scythe", SCYTHE)]:
        took, said = timed([sys.executable, "-c", script, url])
        assert int(said) == records, said
        rates[name] = records / took
    with tempfile.TemporaryDirectory() as folder:
        base = [grange, "--data", folder]
        timed([*base, "oai", "add", url])
        harvest = [*base, "oai", "harvest", "1", "--prefix", "oai_dc", "--wait", "--json"]
        for name in ["grange, all new", "grange, all known"]:
            took, said = timed(harvest)
            counts = json.loads(said)
            assert counts["records"] == records and counts["bad"] == 0, counts
            rates[name] = records / took
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    for name, rate in rates.items():
        print(f"{name:20} {rate:10,.0f} records/s")
    new = rates["grange, all new"]
    print(f"ours is {new / rates['sickle']:.1f} x sickle, {new / rates['oaipmh-scythe']:.1f} x oaipmh-scythe")
    print(f"largest process {memory} MB")
finally:
    server.kill()
