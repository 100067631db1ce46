"""Asks pywb's index server and Grange's the same questions about the same index and compares the answers.

usage: pywb_cdx.py index INDEX.cdxj FILE...                pywb's own index of WARC files
       pywb_cdx.py compare INDEX.cdxj GRANGE_URL COLLECTION

Fields that tell of pywb's own set-up (source, source-coll, access) are left out. Exit code 1 if any answer differs.
"""

import json
import os
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from pywb.indexer.cdxindexer import write_cdx_index
from pywb.warcserver.warcserver import WarcServer
from werkzeug.test import Client

OWN = ("source", "source-coll", "access", "is_fuzzy", "load_url", "is_live")


def index(files, path):
    lines = []
    for name in files:
        out = tempfile.TemporaryFile()
        with open(name, "rb") as stream:
            write_cdx_index(out, stream, os.path.basename(name), cdxj=True, sort=True, post_append=True)
        out.seek(0)
        lines += out.readlines()
    with open(path, "wb") as out:
        out.writelines(sorted(set(lines)))


def lines_of(body, output):
    """Lines without pywb's own fields, and a mark for those that cannot be read."""
    lines = []
    for line in body.decode("utf-8", "surrogateescape").splitlines():
        if output == "json":
            found = json.loads(line)
            lines.append([(k, v) for k, v in found.items() if k not in OWN])
        elif output == "cdxj":
            key, time, rest = line.split(" ", 2)
            lines.append([key, time] + [(k, v) for k, v in json.loads(rest).items() if k not in OWN])
        else:
            lines.append(line)
    return lines


def questions(urls):
    hosts = sorted({urllib.parse.urlsplit(url).hostname or "" for url in urls} - {""})
    for url in urls:
        yield {"url": url}
        yield {"url": url, "output": "json"}
    for url in urls[:40]:
        for more in (
            {"closest": "2014"},
            {"closest": "20140126200800", "limit": "2"},
            {"sort": "reverse"},
            {"sort": "reverse", "limit": "1"},
            {"from": "2014", "to": "2014"},
            {"to": "201401"},
            {"collapseTime": "4"},
            {"resolveRevisits": "true", "output": "json"},
            {"fields": "mime,urlkey,status", "output": "json"},
            {"fl": "timestamp,filename,offset,nothing", "output": "text"},
            {"fl": "length,url"},
        ):
            yield {"url": url, **more}
    for host in hosts[:40]:
        for pattern in (host + "/*", "*." + host, host):
            yield {"url": pattern}
        for kind in ("exact", "prefix", "host", "domain"):
            yield {"url": "http://" + host + "/", "matchType": kind, "output": "json"}
        for text in (
            "status:200", "!status:200", "=status:200", "!=status:200", "~status:[23]0.", "!~status:[23]0.",
            "mime:text", "=mime:text/html", "~mime:(text|image)/.*", "!mime:warc/revisit", "~urlkey:.*css.*",
            "~filename:.*gz", "=nothing:", "nothing:x",
        ):
            yield {"url": "*." + host, "filter": text, "output": "json"}
        yield {"url": "*." + host, "limit": "3"}
        yield {"url": "*." + host, "limit": "3", "filter": ["status:200", "mime:html"]}
        yield {"url": host + "/*", "collapseTime": "8", "fl": "urlkey,timestamp", "output": "json"}
    yield {"url": "http://not-there.invalid/"}
    yield {}
    yield {"url": "http://example.com/", "output": "no-such"}


def compare(path, grange, collection):
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        urls = sorted({json.loads(line.split(" ", 2)[2])["url"] for line in lines})
    paths = {"index_paths": path, "archive_paths": os.path.dirname(path)}
    config = {"enable_auto_colls": False, "collections": {"local": paths}}
    pywb = Client(WarcServer(config_file=None, custom_config=config))
    asked = different = 0
    for question in questions(urls):
        asked += 1
        output = question.get("output", "cdxj")
        query = urllib.parse.urlencode({"allowFuzzy": "0", **question}, doseq=True)
        theirs = pywb.get("/local/index?" + query)
        status, body = theirs.status_code, theirs.get_data()
        try:
            with urllib.request.urlopen(f"{grange}/{collection}/cdx?{query}") as answer:
                own_status, own = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            own_status, own = error.code, error.read()
        if status == own_status == 200:
            same = lines_of(body, output) == lines_of(own, output)
        else:
            same = status == own_status
        if not same:
            different += 1
            if different <= 20:
                print(f"DIFFERENT {query}\n  pywb   {status} {body[:600]!r}\n  grange {own_status} {own[:600]!r}")
    print(f"{asked} questions, {different} different answers")
    return 1 if different else 0


if __name__ == "__main__":
    if sys.argv[1] == "index":
        index(sys.argv[3:], sys.argv[2])
    else:
        sys.exit(compare(*sys.argv[2:]))
