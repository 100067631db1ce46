"""Asks pywb and Grange for every capture of an index in id_ mode and compares status and body byte for byte.

usage: pywb_replay.py INDEX.cdxj ARCHIVE_FOLDER GRANGE_URL COLLECTION

Both replay the same files by the same index (pywb_cdx.py makes it). Exit code 1 if any answer differs.
"""

from gevent.monkey import patch_all

patch_all()

import http.client
import json
import os
import re
import sys
import tempfile
import urllib.parse

from pywb.apps.frontendapp import FrontEndApp
from werkzeug.test import Client

# One capture in a thousand is larger than this; comparing the start of it says as much.
BODY_BYTES_MAX = 64 << 20


def captures(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            _, time, fields = line.split(" ", 2)
            fields = json.loads(fields)
            # Requests with bodies have keys that no id_ URL can ask for.
            if "method" not in fields and re.match("https?:", fields["url"]):
                yield time, fields


def grange_answer(connection, target):
    connection.request("GET", target)
    answer = connection.getresponse()
    return answer.status, answer.read(BODY_BYTES_MAX), dict((k.lower(), v) for k, v in answer.getheaders())


def compare(index, folder, grange, collection):
    os.chdir(tempfile.mkdtemp())
    config = {
        "collections": {collection: {"index_paths": index, "archive_paths": folder}},
        "debug": False,
    }
    pywb = Client(FrontEndApp(config_file=None, custom_config=config))
    asked = same = failed_both = different = 0
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(grange).netloc, timeout=60)
    for time, fields in captures(index):
        asked += 1
        url = urllib.parse.quote(fields["url"], safe="%/:=&?~#+!$,;'@()*[]|^`{}\"<>\\")
        target = f"/{collection}/{time}id_/{url.replace('#', '%23')}"
        theirs = pywb.get(target)
        status, body = theirs.status_code, theirs.get_data()[:BODY_BYTES_MAX]
        own_status, own, headers = grange_answer(connection, target)
        if status >= 400 and own_status >= 400 and "memento-datetime" not in headers:
            failed_both += 1
        elif (status, body) == (own_status, own):
            same += 1
        else:
            different += 1
            if different <= 30:
                print(f"DIFFERENT {target} ({fields.get('filename')} at {fields.get('offset')})")
                print(f"  pywb   {status} {len(body)} bytes {dict(theirs.headers).get('Location', '')} {body[:200]!r}")
                print(f"  grange {own_status} {len(own)} bytes {headers.get('location', '')} {own[:200]!r}")
    print(f"{asked} captures, {same} the same, {failed_both} that neither can show, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(compare(*sys.argv[1:]))
