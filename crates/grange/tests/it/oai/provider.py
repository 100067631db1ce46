"""A repository for tests, served by somebody else's library.

    provider.py oaipmh|oai_repo STATE    prints its base URL, then serves until killed

STATE is a JSON file, read anew for each request: {"count": N, "page": N, "changes": {"5": {"at": seconds since 1970,
"deleted": true, "title": "..."}}}. Record n is oai:prov.example:coll<n % 3>:<n>, dated an hour after record n - 1.
Deleted from the beginning is every record with n % 10 == 9.
"""
import json
import sys
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl

from waitress.server import create_server

kind, state_path = sys.argv[1], sys.argv[2]
START = datetime(2020, 1, 1)
STEP = timedelta(hours=1)
SECONDS = "YYYY-MM-DDThh:mm:ssZ"
DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
SCHEMA = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"


class Holdings:
    """The records as the state file has them now."""

    def __init__(self):
        with open(state_path) as file:
            self.state = json.load(file)
        self.page = self.state["page"]
        self.changes = {int(n): change for n, change in self.state.get("changes", {}).items()}

    def number(self, identifier):
        tail = identifier.rsplit(":", 1)[-1]
        return int(tail) if tail.isdigit() and int(tail) < self.state["count"] else None

    def identifier(self, n):
        return f"oai:prov.example:coll{n % 3}:{n}"

    def stamp(self, n):
        at = self.changes.get(n, {}).get("at")
        return START + STEP * n if at is None else datetime.fromtimestamp(at, timezone.utc).replace(tzinfo=None)

    def deleted(self, n):
        return self.changes.get(n, {}).get("deleted", n % 10 == 9)

    def title(self, n):
        return self.changes.get(n, {}).get("title", f"Num\u00e9ro {n} & <more>")

    def select(self, since, until, part):
        plain = lambda at: at.replace(tzinfo=None) if at else None
        since, until = plain(since), plain(until)
        return [
            n for n in range(self.state["count"])
            if (since is None or self.stamp(n) >= since) and (until is None or self.stamp(n) <= until)
            and (part is None or part == f"coll{n % 3}")
        ]


def with_oaipmh(base_url):
    from oaipmh import common, error, metadata
    from oaipmh.server import BatchingServer, oai_dc_writer

    def record(held, n):
        gone = held.deleted(n)
        header = common.Header(None, held.identifier(n), held.stamp(n), [f"coll{n % 3}"], gone)
        fields = {"title": [held.title(n)], "creator": ["Author, A."], "subject": ["Cultural heritage", "Maps"]}
        return header, None if gone else common.Metadata(None, fields), None

    class Repository:
        def __init__(self, held):
            self.held = held

        def identify(self):
            return common.Identify("Judged by oaipmh", base_url, "2.0", ["admin@example.org"], START, "persistent",
                                   SECONDS, ["identity"], toolkit_description=False)

        def listMetadataFormats(self, identifier=None):
            return [("oai_dc", SCHEMA, DC)]

        def listSets(self, cursor=0, batch_size=10):
            return [(f"coll{n}", f"Collection {n}", None) for n in range(3)][cursor:cursor + batch_size]

        def getRecord(self, metadataPrefix, identifier):
            n = self.held.number(identifier)
            if n is None:
                raise error.IdDoesNotExistError(identifier)
            return record(self.held, n)

        def listIdentifiers(self, metadataPrefix=None, from_=None, until=None, set=None, cursor=0, batch_size=10):
            return [record(self.held, n)[0] for n in self.held.select(from_, until, set)[cursor:cursor + batch_size]]

        def listRecords(self, metadataPrefix=None, from_=None, until=None, set=None, cursor=0, batch_size=10):
            return [record(self.held, n) for n in self.held.select(from_, until, set)[cursor:cursor + batch_size]]

    def answer(arguments):
        held = Holdings()
        registry = metadata.MetadataRegistry()
        registry.registerWriter("oai_dc", oai_dc_writer)
        server = BatchingServer(Repository(held), metadata_registry=registry, resumption_batch_size=held.page)
        return server.handleRequest(arguments)

    return answer


def with_oai_repo(base_url):
    import lxml.etree as tree
    import oai_repo

    class Data(oai_repo.DataInterface):
        def __init__(self, held):
            self.held = held
            self.limit = held.page

        def get_identify(self):
            said = oai_repo.Identify()
            said.base_url, said.admin_email, said.repository_name = base_url, ["admin@example.org"], "Judged by oai_repo"
            said.deleted_record, said.granularity = "persistent", SECONDS
            said.earliest_datestamp, said.compression, said.description = "2020-01-01T00:00:00Z", [], []
            return said

        def is_valid_identifier(self, identifier):
            return self.held.number(identifier) is not None

        def get_metadata_formats(self, identifier=None):
            return [oai_repo.MetadataFormat("oai_dc", SCHEMA, DC)]

        def get_record_header(self, identifier):
            n = self.held.number(identifier)
            header = oai_repo.RecordHeader()
            header.identifier, header.setspecs = identifier, [f"coll{n % 3}"]
            header.datestamp = self.held.stamp(n).strftime("%Y-%m-%dT%H:%M:%SZ")
            if self.held.deleted(n):
                header.status = "deleted"
            return header

        def get_record_metadata(self, identifier, metadataprefix):
            n = self.held.number(identifier)
            if self.held.deleted(n):
                return None
            root = tree.Element(f"{{{DC}}}dc", nsmap={"oai_dc": DC, "dc": "http://purl.org/dc/elements/1.1/"})
            tree.SubElement(root, "{http://purl.org/dc/elements/1.1/}title").text = self.held.title(n)
            return root

        def get_record_abouts(self, identifier):
            return []

        def list_set_specs(self, identifier=None, cursor=0):
            if identifier:
                return [f"coll{self.held.number(identifier) % 3}"], 1, None
            return [f"coll{n}" for n in range(3)][cursor:cursor + self.limit], 3, None

        def get_set(self, setspec):
            return oai_repo.Set(setspec, "Collection " + setspec[4:], [])

        def list_identifiers(self, metadataprefix, filter_from=None, filter_until=None, filter_set=None, cursor=0):
            found = self.held.select(filter_from, filter_until, filter_set)
            return [self.held.identifier(n) for n in found[cursor:cursor + self.limit]], len(found), None

    return lambda arguments: bytes(oai_repo.OAIRepository(Data(Holdings())).process(arguments))


def main():
    answers = []

    def app(environment, start):
        query = environment["QUERY_STRING"]
        if environment["REQUEST_METHOD"] == "POST":
            query = environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0)).decode()
        body = answers[0](dict(parse_qsl(query)))
        start("200 OK", [("Content-Type", "text/xml; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    server = create_server(app, host="127.0.0.1", port=0, threads=4)
    base_url = f"http://127.0.0.1:{server.effective_port}/oai"
    answers.append({"oaipmh": with_oaipmh, "oai_repo": with_oai_repo}[kind](base_url))
    print(base_url, flush=True)
    server.run()


main()
