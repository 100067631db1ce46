"""Parts of bench/swap.sh that wrk and curl cannot do.
  swap.py fill FOLDER COUNT      files of 4 KiB as a SWAP server keeps them, with their checksums
  swap.py sync FOLDER COUNT      files of 4 KiB by 16 threads, each synced, named and its folder synced: what the disk can
  swap.py idle HOST:PORT COUNT   holds idle connections until standard input ends
"""

import hashlib
import os
import resource
import socket
import sys
import threading
import time


def fill(folder, count):
    for part in range(100):
        os.makedirs(f"{folder}/{part:02}")
    for number in range(count):
        data = (b"%08d" % number) * 512
        path = f"{folder}/{number % 100:02}/{number}"
        with open(path, "wb") as file:
            file.write(data)
        os.setxattr(path, "user.sha512", hashlib.sha512(data).digest())


def sync(folder, count):
    os.makedirs(folder)
    for part in range(100):
        os.makedirs(f"{folder}/{part:02}")

    def write(first):
        for number in range(first, count, 16):
            file = os.open(folder, os.O_TMPFILE | os.O_RDWR)
            os.write(file, b"0123456789abcdef" * 256)
            os.fdatasync(file)
            parent = os.open(f"{folder}/{number % 100:02}", os.O_RDONLY)
            os.link(f"/proc/self/fd/{file}", str(number), dst_dir_fd=parent)
            os.fsync(parent)
            os.close(file)
            os.close(parent)

    start = time.monotonic()
    threads = [threading.Thread(target=write, args=(first,)) for first in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"the disk alone, 16 threads: {count / (time.monotonic() - start):.0f} files/s")


def idle(address, count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, max(count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    host, port = address.rsplit(":", 1)
    held = [socket.create_connection((host, int(port))) for _ in range(count)]
    # Each has asked once, so that whatever a connection takes has been taken.
    for connection in held:
        connection.sendall(b"GET /get/ HTTP/1.1\r\nHost: bench\r\n\r\n")
    for connection in held:
        connection.recv(65536)
    print(f"{len(held)} connections", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    {"fill": fill, "sync": sync, "idle": idle}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
