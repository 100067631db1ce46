"""The measuring part of oai.sh.

  oai.py serve PORT RECORDS         pages of a repository, from memory; says "ready" when they are there
  oai.py peer sickle|scythe URL     one harvest by a peer; prints the records, the deleted ones, the seconds of clock
                                    and of processor
  oai.py run GRANGE RECORDS RUNS    everybody in turn; prints a table. GRANGE is the program, or oai_speed, the example
                                    of grange-harvest that does the same and is built sooner
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
from xml.sax.saxutils import escape

PAGE = 100
SUBJECTS = ["Cultural heritage", "Physics", "History of science", "Maps", "HERITAGE studies", "Botany"]
TYPES = ["jpeg", "text", "book", "image", "sound"]
DC = "xmlns:dc='http://purl.org/dc/elements/1.1/'"
FILTER = (
    "<filters match='any'><selectionNamespaces>%s</selectionNamespaces>"
    "<filter xpath='//dc:subject' regexp='keyword' ignoreCase='true'/>"
    "<filter xpath='//dc:subject' regexp='heritage' ignoreCase='true'/></filters>" % DC
)
NORMALIZE = (
    "<normalize><selectionNamespaces>%s</selectionNamespaces><mapping xpath='//dc:type'>"
    "<newElement name='dc:type' regexp='jpeg' ignoreCase='true'><newValue>image</newValue></newElement>"
    "</mapping></normalize>" % DC
)


def deleted(number):
    return number % 50 == 49


def record(number):
    minutes = number * 37
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1577836800 + minutes * 60))
    status = ' status="deleted"' if deleted(number) else ""
    out = "<record><header%s><identifier>oai:prov.example:coll%d:%d</identifier><datestamp>%s</datestamp>" % (
        status, number % 7, number, stamp)
    out += "<setSpec>coll%d</setSpec></header>" % (number % 7)
    if not status:
        fields = [
            ("title", "Record number %d – étude & <test>" % number), ("creator", "Author, A. %d" % (number % 97)),
            ("creator", "Other, B."), ("subject", SUBJECTS[number % 6]), ("subject", "keyword %d" % (number % 300)),
            ("description", "Lorem ipsum dolor sit amet " * 12), ("date", str(1900 + number % 120)),
            ("type", TYPES[number % 5]), ("format", "image/jpeg"),
            ("identifier", "https://prov.example/item/%d" % number), ("language", "en"), ("rights", "CC0"),
        ]
        out += (
            '<metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            'xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ '
            'http://www.openarchives.org/OAI/2.0/oai_dc.xsd">'
        )
        out += "".join("<dc:%s>%s</dc:%s>" % (name, escape(text), name) for name, text in fields)
        out += "</oai_dc:dc></metadata>"
    return out + "</record>\n"


def wrap(base, inside):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">\n'
        "<responseDate>%s</responseDate>\n<request>%s</request>\n%s\n</OAI-PMH>\n" % (now, base, inside)
    ).encode()


def pages(base, records):
    made = {}
    for first in range(0, records, PAGE):
        last = first + PAGE >= records
        token = '<resumptionToken completeListSize="%d" cursor="%d">%s</resumptionToken>' % (
            records, first, "" if last else str(first + PAGE))
        body = "".join(record(number) for number in range(first, min(first + PAGE, records)))
        made[str(first)] = wrap(base, "<ListRecords>\n%s%s\n</ListRecords>" % (body, token))
    return made


def serve(port, records):
    base = "http://127.0.0.1:%d/oai" % port
    lists = pages(base, records)
    schema = "http://www.openarchives.org/OAI/2.0/oai_dc"
    others = {
        "Identify": wrap(base, "<Identify><repositoryName>bench</repositoryName><baseURL>%s</baseURL>"
            "<protocolVersion>2.0</protocolVersion><adminEmail>bench@example.org</adminEmail>"
            "<earliestDatestamp>2020-01-01T00:00:00Z</earliestDatestamp><deletedRecord>persistent</deletedRecord>"
            "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>" % base),
        "ListMetadataFormats": wrap(base, "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>"
            "<schema>%s.xsd</schema><metadataNamespace>%s/</metadataNamespace></metadataFormat></ListMetadataFormats>"
            % (schema, schema)),
        "ListSets": wrap(base, "<ListSets>%s</ListSets>" % "".join(
            "<set><setSpec>coll%d</setSpec><setName>Collection %d</setName></set>" % (n, n) for n in range(7))),
    }

    async def answer(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                query = urllib.parse.parse_qs(head.split(b" ", 2)[1].partition(b"?")[2].decode())
                verb = query.get("verb", [""])[0]
                body = others.get(verb) or lists.get(query.get("resumptionToken", ["0"])[0])
                status = b"200 OK" if body else b"404 Not Found"
                writer.write(b"HTTP/1.1 %s\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
                             % (status, len(body or b"")) + (body or b""))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main():
        server = await asyncio.start_server(answer, "127.0.0.1", port)
        print("ready", flush=True)
        await server.serve_forever()

    asyncio.run(main())


def peer(name, url):
    # Their start-up is not counted: what is compared is the harvest.
    count = gone = 0
    if name == "sickle":
        from sickle import Sickle

        start, used = time.monotonic(), time.process_time()
        for one in Sickle(url).ListRecords(metadataPrefix="oai_dc"):
            count += 1
            gone += one.deleted
    else:
        from oaipmh_scythe import Scythe

        start, used = time.monotonic(), time.process_time()
        with Scythe(url) as scythe:
            for one in scythe.list_records(metadata_prefix="oai_dc"):
                count += 1
                gone += one.deleted
    print(count, gone, "%.3f %.3f" % (time.monotonic() - start, time.process_time() - used))


class Run:
    """What one harvest took: seconds of the clock, of processors (its own, with the kernel's for it), memory in MB."""

    def __init__(self, wall, cpu, memory, count):
        self.wall, self.cpu, self.memory, self.count = wall, cpu, memory, count


def timed(command):
    """Wall seconds, processor seconds, peak memory in MB, standard output."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), errors.seek(0)
        if process.returncode:
            sys.exit("%s failed: %s" % (" ".join(command), errors.read().decode(errors="replace")))
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.read().decode()


def ours(grange, url, folder, rules, strict):
    """A harvest into a fresh data folder; only the harvest is timed, with the start of the program."""
    data = tempfile.mkdtemp(dir=folder)
    names = []
    for name, text in ("filter.xml", FILTER), ("normalize.xml", NORMALIZE):
        names.append(os.path.join(data, name))
        with open(names[-1], "w") as file:
            file.write(text)
    if os.path.basename(grange) == "oai_speed":
        extra = (names if rules else []) + (["very-strict"] if strict else [])
        wall, cpu, memory, out = timed([grange, url, data, *extra])
        counts = json.loads(out)["counts"]
    else:
        timed([grange, "--data", data, "init"])
        added = json.loads(timed([grange, "--data", data, "oai", "add", url, "--delay", "0s", "--json"])[3])
        extra = ["--filter", names[0], "--normalize", names[1]] if rules else []
        extra += ["--validation", "very-strict"] if strict else []
        harvest = ["oai", "harvest", str(added["id"]), "--prefix", "oai_dc", "--wait", "--json", *extra]
        wall, cpu, memory, out = timed([grange, "--data", data, *harvest])
        counts = json.loads(out)
    return Run(wall, cpu, memory, sum(counts[name] for name in ("new", "changed", "unchanged", "deleted")))


def peer_run(name, url):
    _, _, memory, out = timed([sys.executable, __file__, "peer", name, url])
    count, _, wall, cpu = out.split()
    return Run(float(wall), float(cpu), memory, int(count))


def run(grange, records, runs):
    port = 18990
    url = "http://127.0.0.1:%d/oai" % port
    # Nothing is deleted before all is measured: for minutes ext4 steps over every inode that was freed, one by one,
    # whenever it creates a file near it, which is many times the cost of the file.
    folder = tempfile.mkdtemp(prefix="grange-bench-oai-")
    server = subprocess.Popen([sys.executable, __file__, "serve", str(port), str(records)], stdout=subprocess.PIPE)
    try:
        if server.stdout.readline().strip() != b"ready":
            sys.exit("the server of pages did not start; is port %d free?" % port)
        competitors = {
            "sickle 0.7.0, objects": lambda: peer_run("sickle", url),
            "oaipmh-scythe 0.16.0, objects": lambda: peer_run("scythe", url),
            "ours, stored": lambda: ours(grange, url, folder, False, False),
            "ours, filter + normalizer, stored": lambda: ours(grange, url, folder, True, False),
            "ours, XML Schema, stored": lambda: ours(grange, url, folder, False, True),
        }
        best = {}
        for _ in range(runs):
            for name, compete in competitors.items():
                got = compete()
                if got.count != records:
                    sys.exit("%s got %d of %d records" % (name, got.count, records))
                old = best.get(name, got)
                got.memory = max(got.memory, old.memory)
                best[name] = min(got, old, key=lambda one: one.wall)
                best[name].memory = got.memory
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    print("%d records, %d per page; %d cores, load %.1f" % (records, PAGE, os.cpu_count(), os.getloadavg()[0]))
    print("| command | wall s | records/s | x sickle | x scythe | CPU s | records/CPU s | cores used | peak MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    sickle, scythe = (best[name].wall for name in list(best)[:2])
    for name, one in best.items():
        print("| %s | %.2f | %.0f | %.1f | %.1f | %.2f | %.0f | %.1f | %.0f |" % (
            name, one.wall, records / one.wall, sickle / one.wall, scythe / one.wall, one.cpu, records / one.cpu,
            one.cpu / one.wall, one.memory))


if __name__ == "__main__":
    act, *arguments = sys.argv[1:]
    if act == "serve":
        serve(int(arguments[0]), int(arguments[1]))
    elif act == "peer":
        peer(*arguments)
    else:
        run(arguments[0], int(arguments[1]), int(arguments[2]))
