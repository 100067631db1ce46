"""Times the Python peers over one file. usage: peers.py fastwarc|fastwarc-digest|warcio FILE

Prints the number of records, of good digests, the seconds of wall clock and of processor."""

import sys
import time

mode, path = sys.argv[1:]
start = time.perf_counter()
records = good = 0
with open(path, "rb") as file:
    if mode == "warcio":
        from warcio.archiveiterator import ArchiveIterator

        for record in ArchiveIterator(file):
            records += 1
    else:
        from fastwarc.warc import ArchiveIterator, WarcRecordType

        if mode == "fastwarc":
            for record in ArchiveIterator(file, parse_http=True):
                records += 1
        else:
            for record in ArchiveIterator(file, parse_http=True):
                records += 1
                if record.headers.get("WARC-Payload-Digest") and record.verify_payload_digest(True):
                    good += 1
print(records, good, "%.3f" % (time.perf_counter() - start), "%.2f" % time.process_time())
