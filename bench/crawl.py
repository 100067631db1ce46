"""Crawls a synthetic web with wget, scrapy and grange, taking turns, and prints ratios. See crawl.sh."""

import json
import os
import subprocess
import sys
import tempfile
import time

GRANGE, HOSTS, PAGES, RUNS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])


def timed(command, **more):
    """Runs a command; answers wall seconds, processor seconds and the most memory of it and its children in MB."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more)
    output = process.stdout.read()
    _, _, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output


def serve():
    command = [GRANGE, "--json", "testkit", "serve-web", "--hosts", str(HOSTS), "--pages", str(PAGES)]
    command += ["--profile", "plain", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    text = ""
    while True:
        text += server.stdout.readline()
        try:
            return server, json.loads(text)
        except json.JSONDecodeError:
            continue


def with_wget(seeds, proxy, folder):
    command = ["wget", "-q", "-r", "-l", "inf", "-p", "-H", "--warc-file", folder + "/w", "-P", folder + "/tree"]
    command += ["-e", "robots=off", "--no-verbose", "-D", ",".join(seed.split("/")[2] for seed in seeds)]
    env = dict(os.environ, http_proxy="http://" + proxy)
    wall, cpu, memory, _ = timed(command + seeds, env=env)
    records = subprocess.run([GRANGE, "--json", "warc", "ls", folder + "/w.warc.gz"], capture_output=True, text=True)
    urls = records.stdout.count('"response"')
    return urls, wall, cpu, memory


def with_scrapy(seeds, proxy, folder):
    script = os.path.join(os.path.dirname(__file__), "crawl_scrapy.py")
    wall, cpu, memory, _ = timed([sys.executable, script, proxy, folder + "/s.warc.gz", *seeds])
    records = subprocess.run([GRANGE, "--json", "warc", "ls", folder + "/s.warc.gz"], capture_output=True, text=True)
    return records.stdout.count('"response"'), wall, cpu, memory


def with_grange(seeds, proxy, folder):
    command = [GRANGE, "--json", "crawl", *seeds, "--out", folder + "/g", "--all-hosts-to", proxy, "--delay", "0s"]
    command += ["--workers", "100"]
    wall, cpu, memory, output = timed(command)
    return json.loads(output)["succeeded"], wall, cpu, memory


def main():
    server, serving = serve()
    best = {}
    try:
        for _ in range(RUNS):
            for name, crawl in (("wget", with_wget), ("scrapy", with_scrapy), ("grange", with_grange)):
                with tempfile.TemporaryDirectory() as folder:
                    urls, wall, cpu, memory = crawl(serving["seeds"], serving["listen"], folder)
                row = (wall / urls, cpu / urls, memory, urls)
                old = best.get(name, row)
                best[name] = (min(old[0], row[0]), min(old[1], row[1]), max(old[2], row[2]), urls)
    finally:
        server.terminate()
    print(f"{HOSTS} hosts, {PAGES} pages each; best of {RUNS}")
    for name, (wall, cpu, memory, urls) in best.items():
        print(f"  {name:8} {urls:7} URLs  {1 / wall:8.0f} URL/s  {cpu * 1e6:7.0f} µs CPU/URL  {memory:6.0f} MB")
    grange = best["grange"]
    for name in ("wget", "scrapy"):
        peer = best[name]
        print(f"  grange is {peer[0] / grange[0]:.2f} × {name} in URL/s and takes {grange[1] / peer[1]:.2f} × its CPU per URL")


main()
