"""Crawls with scrapy and writes request and response of every answer into a WARC file. See crawl.sh.

    crawl_scrapy.py PROXY WARC SEED...
"""

import sys
from io import BytesIO

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

PROXY, WARC, SEEDS = sys.argv[1], sys.argv[2], sys.argv[3:]
WRITER = WARCWriter(open(WARC, "wb"), gzip=True)


def headers_of(message):
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, values in message.items() for value in values]


class Archive(scrapy.Spider):
    name = "archive"
    start_urls = SEEDS
    allowed_domains = [seed.split("/")[2] for seed in SEEDS]
    links = LinkExtractor(
        tags=("a", "area", "img", "link", "script", "iframe", "frame", "source"),
        attrs=("href", "src"),
        deny_extensions=[],
        unique=True,
    )

    async def start(self):
        for seed in SEEDS:
            yield self.ask(seed)

    def ask(self, url):
        # A proxy sends every host to the synthetic web; redirects are answers of their own, as in an archive.
        meta = {"proxy": "http://" + PROXY, "dont_redirect": True, "handle_httpstatus_all": True}
        return scrapy.Request(url, meta=meta, callback=self.parse)

    def parse(self, response):
        head = StatusAndHeaders(f"{response.status} OK", headers_of(response.headers), protocol="HTTP/1.1")
        record = WRITER.create_warc_record(response.url, "response", payload=BytesIO(response.body), http_headers=head)
        asked = StatusAndHeaders("GET / HTTP/1.1", headers_of(response.request.headers), is_http_request=True)
        request = WRITER.create_warc_record(response.url, "request", http_headers=asked)
        WRITER.write_request_response_pair(request, record)
        location = response.headers.get("Location")
        if location:
            yield self.ask(response.urljoin(location.decode("latin-1")))
        if isinstance(response, scrapy.http.TextResponse):
            for link in self.links.extract_links(response):
                yield self.ask(link.url)


process = CrawlerProcess(
    {
        "LOG_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "CONCURRENT_REQUESTS": 100,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
    }
)
process.crawl(Archive)
process.start()
