"""Times the first byte of an answer, one question after another over one connection.

usage: first_byte.py NAME PORT PATH [TIMES]
Prints the median and the 99th percentile in milliseconds. The client is Python and takes a share of each itself.
"""

import socket
import sys
import time


def read_rest(stream, data):
    """Reads the answer to its end, whichever way its length is told."""
    while b"\r\n\r\n" not in data:
        data += stream.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.split(b" ", 2)[1] == b"200":
        sys.exit("not answered: " + head.decode("latin-1"))
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"content-length" in fields:
        whole = lambda: len(body) >= int(fields[b"content-length"])
    else:
        whole = lambda: body.endswith(b"\r\n0\r\n\r\n") or body == b"0\r\n\r\n"
    while not whole():
        piece = stream.recv(65536)
        if not piece:
            break
        body += piece
    return fields.get(b"connection") == b"close"


def main(name, port, path, times="1000"):
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    took, stream = [], None
    for _ in range(int(times)):
        if stream is None:
            stream = socket.create_connection(("127.0.0.1", int(port)))
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = time.perf_counter()
        stream.sendall(request)
        data = stream.recv(65536)
        took.append((time.perf_counter() - start) * 1000)
        if read_rest(stream, data):
            stream.close()
            stream = None
    took.sort()
    print(f"  {name:<7} {took[len(took) // 2]:10.2f} ms half of the time   {took[len(took) * 99 // 100]:10.2f} ms but for one in a hundred")


main(*sys.argv[1:])
