"""Pages of oai_dc records made once and served from memory, so that clients are measured and not a repository.

    oai_replay.py RECORDS PER_PAGE     prints the base URL, then serves until killed
"""
import asyncio
import sys
import urllib.parse

records, per_page = int(sys.argv[1]), int(sys.argv[2])
HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
    "<responseDate>2026-01-01T00:00:00Z</responseDate><request>http://127.0.0.1/oai</request>"
)
DC = (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ '
    'http://www.openarchives.org/OAI/2.0/oai_dc.xsd">'
)
SUBJECTS = ["Cultural heritage", "Physics", "History of science", "Maps", "HERITAGE studies", "Botany"]


def record(n):
    return (
        f"<record><header><identifier>oai:prov.example:coll{n % 7}:{n}</identifier>"
        f"<datestamp>2020-01-01T00:00:00Z</datestamp><setSpec>coll{n % 7}</setSpec></header><metadata>{DC}"
        f"<dc:title>Record number {n} \u2013 \u00e9tude &amp; &lt;test&gt;</dc:title><dc:creator>Author, A. {n % 97}"
        f"</dc:creator><dc:creator>Other, B.</dc:creator><dc:subject>{SUBJECTS[n % 6]}</dc:subject>"
        f"<dc:subject>keyword {n % 300}</dc:subject><dc:description>{'Lorem ipsum dolor sit amet ' * 12}"
        f"</dc:description><dc:date>{1900 + n % 120}</dc:date><dc:type>jpeg</dc:type><dc:format>image/jpeg</dc:format>"
        f"<dc:identifier>https://prov.example/item/{n}</dc:identifier><dc:language>en</dc:language>"
        f"<dc:rights>CC0</dc:rights></oai_dc:dc></metadata></record>"
    )


def page(start):
    body = "".join(record(n) for n in range(start, min(start + per_page, records)))
    after = start + per_page
    token = str(after) if after < records else ""
    token = f'<resumptionToken completeListSize="{records}" cursor="{start}">{token}</resumptionToken>'
    return f"{HEAD}<ListRecords>{body}{token}</ListRecords></OAI-PMH>".encode()


pages = {str(start): page(start) for start in range(0, records, per_page)}
small = {
    "Identify": "<Identify><repositoryName>Replay</repositoryName><baseURL>http://127.0.0.1/oai</baseURL>"
    "<protocolVersion>2.0</protocolVersion><adminEmail>a@example.org</adminEmail><earliestDatestamp>"
    "2020-01-01T00:00:00Z</earliestDatestamp><deletedRecord>persistent</deletedRecord><granularity>"
    "YYYY-MM-DDThh:mm:ssZ</granularity></Identify>",
    "ListMetadataFormats": "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix><schema>"
    "http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema><metadataNamespace>"
    "http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace></metadataFormat></ListMetadataFormats>",
    "ListSets": '<error code="noSetHierarchy"/>',
}


async def answer(reader, writer):
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            query = urllib.parse.parse_qs(request.split(b" ", 2)[1].partition(b"?")[2].decode())
            verb = query["verb"][0]
            if verb in small:
                body = f"{HEAD}{small[verb]}</OAI-PMH>".encode()
            else:
                body = pages[query.get("resumptionToken", ["0"])[0]]
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
            writer.write(head % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/oai", flush=True)
    await server.serve_forever()


asyncio.run(main())
