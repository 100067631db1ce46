"""Asks pywb and Grange for every capture of an index in id_ mode and compares status and body byte for byte.

usage: pywb_replay.py INDEX.cdxj ARCHIVE_FOLDER GRANGE_URL COLLECTION

Both replay the same files; pywb by its own index (pywb_cdx.py makes it), and once more by asking Grange as if it were
OutbackCDX. Exit code 1 if any answer differs.
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
    grange = "http://" + urllib.parse.urlsplit(grange).netloc
    config = {
        "collections": {
            "own": {"index_paths": index, "archive_paths": folder},
            "asking": {"index_paths": f"cdx+{grange}/{collection}", "archive_paths": folder},
        },
        "debug": False,
    }
    pywb = Client(FrontEndApp(config_file=None, custom_config=config))
    asked = same = failed_both = different = astray = 0
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(grange).netloc, timeout=60)
    for time, fields in captures(index):
        asked += 1
        # Without a path pywb only says where it would be.
        whole = re.sub(r"^(https?://[^/?#]+)(?=[?#]|$)", r"\1/", fields["url"])
        url = urllib.parse.quote(whole, safe="%/:=&?~#+!$,;'@()*[]|^`{}\"<>\\")
        below = f"{time}id_/{url.replace('#', '%23')}"
        theirs = pywb.get(f"/own/{below}")
        status, body = theirs.status_code, theirs.get_data()[:BODY_BYTES_MAX]
        through = pywb.get(f"/asking/{below}")
        if (through.status_code, through.get_data()[:BODY_BYTES_MAX]) != (status, body):
            astray += 1
            if astray <= 10:
                print(f"ASTRAY {below}: {status} {len(body)} bytes, by Grange's index {through.status_code} {through.get_data()[:200]!r}")
        target = f"/{collection}/{below}"
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
    print(f"{asked} captures, {same} the same, {failed_both} that neither can show, {different} different; {astray} astray by Grange's index")
    return 1 if different or astray else 0


if __name__ == "__main__":
    sys.exit(compare(*sys.argv[1:]))
