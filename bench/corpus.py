"""Builds the corpus of the WARC benchmark: sound samples and synthetic pages, repeated to the size asked for.

usage: corpus.py OUT.warc.gz [MEGABYTES] [SAMPLES]
Every peer must be able to read it, so it holds one gzip member per record and nothing damaged.
"""

import gzip
import hashlib
import base64
import os
import random
import sys
import uuid

SAMPLES = [
    "pywb/iana.warc.gz",
    "pywb/dupes.warc.gz",
    "ukwa-manage/sopa-wikipedia-homepage.warc.gz",
    "webarchive-discovery/BL-20140325121225068-00000-32090~opera~8443.warc.gz",
    "webarchive-discovery/BL-20140325122341434-00000-32090~opera~8443.warc.gz",
    "webarchive-discovery/flashfrozen-jwat-recompressed.warc.gz",
    "chatnoir-resiliparse/warcfile.warc.gz",
    "webarchive-commons/IAH-urls-wget.warc.gz",
    "ipwb/froggie.warc.gz",
]
WORDS = "the of archive web page and to in a is that for it was on as with by at from his an were are".split()


def sha1(data):
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def page(rng, number):
    """A page of 2 to 60 kB of text that compresses about as well as real ones."""
    body = ["<html><head><title>Page %d</title></head><body>" % number]
    for _ in range(rng.randint(5, 120)):
        words = [rng.choice(WORDS) if rng.random() < 0.6 else "%x" % rng.getrandbits(28) for _ in range(60)]
        body.append("<p class='c%d'>%s</p>\n" % (rng.randint(1, 9), " ".join(words)))
    body.append("</body></html>")
    return "".join(body).encode()


def record(kind, number, block, payload):
    head = (
        "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:uuid:%s>\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n"
        "WARC-Target-URI: http://example.org/%d\r\nWARC-Block-Digest: %s\r\nWARC-Payload-Digest: %s\r\n"
        "Content-Type: application/http; msgtype=%s\r\nContent-Length: %d\r\n\r\n"
        % (kind, uuid.UUID(int=number * 2 + len(kind)), number, sha1(block), sha1(payload), kind, len(block))
    ).encode()
    return gzip.compress(head + block + b"\r\n\r\n", 6, mtime=0)


def synthetic(pages):
    rng = random.Random(1)
    for number in range(pages):
        body = page(rng, number)
        head = "HTTP/1.1 200 OK\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\nServer: test\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        yield record("response", number, head.encode() + body, body)
        ask = b"GET /%d HTTP/1.1\r\nHost: example.org\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n" % number
        yield record("request", number, ask, b"")


def main():
    out = sys.argv[1]
    size = int(sys.argv[2]) * 1_000_000 if len(sys.argv) > 2 else 300_000_000
    samples = sys.argv[3] if len(sys.argv) > 3 else os.path.join(os.path.dirname(__file__), "../../shared/warc-samples")
    unit = []
    for name in SAMPLES:
        path = os.path.join(samples, name)
        if os.path.exists(path):
            unit.append(open(path, "rb").read())
        else:
            print("no sample", path, "- synthetic pages only", file=sys.stderr)
    unit.append(b"".join(synthetic(250)))
    unit = b"".join(unit)
    with open(out, "wb") as file:
        written = 0
        while written < size:
            written += file.write(unit)
    print("%s: %d bytes of stored records" % (out, written))


main()
