# SPDX-License-Identifier: BSD-2-Clause
"""A user who writes completions of others into a queue of his own: forge.py TREE QPN

Makes a PD and a CQ on rxe1, maps the CQ's ring and writes into each slot of it, over and
over, that the QP of this number received 30 bytes and sent what it had to send. Makes
four pairs of QPs, again and again, asks for messages by their `recv` and sends some, and
has the daemon look at the ring by the CQ's `wc`. Prints "forging" when that was done
three times, and goes on until SIGTERM; leaves nothing behind.
"""
import ctypes
import errno
import mmap
import os
import signal
import struct
import sys
import threading

OURS = 1 << 63
PRODUCER, CONSUMER, DATA = 128, 256, 384
CQE = 255
PAIRS = [(f"forge{n}a", f"forge{n}b") for n in range(4)]

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def quietly(fn, *args):
    try:
        fn(*args)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EIO, errno.EINVAL, errno.ENOMEM):
            raise


def make_pairs():
    for a, b in PAIRS:
        for q in (a, b):
            os.mkdir(f"qp/{q}")
            write(f"qp/{q}/ctl", "create type=rc pd=forge cq=forge rq=1 sq=8 inline=0\n")
        write(f"qp/{a}/ctl", f"connect peer={b} rnr_retry=7\n")
    return ([os.open(f"qp/{q}/recv", os.O_RDWR | os.O_NONBLOCK) for _, q in PAIRS],
            [os.open(f"qp/{q}/send", os.O_RDWR) for q, _ in PAIRS])


def unmake_pairs(files):
    for fd in files:
        os.close(fd)
    for pair in PAIRS:
        for q in pair:
            os.rmdir(f"qp/{q}")


def ring_of(path):
    fd = os.open(path, os.O_RDWR)
    size = DATA + (CQE + 1) * 64
    where = LIBC.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_WRITE,
                      mmap.MAP_SHARED, fd, ctypes.c_long(0))
    if where == ctypes.c_void_p(-1).value:
        sys.exit("no FUSE passthrough here")
    return memoryview((ctypes.c_char * size).from_address(where)).cast("B")


def forged(wr_id, opcode, qpn):
    return struct.pack("<QIIIIIIIIHHBBBB", wr_id, 0, opcode, 0, 30, 0, qpn, 0, 0, 0, 0, 0, 0, 1,
                       0).ljust(64, b"\0")


def scribble(ring, qpn, stop):
    page = b"".join(forged(OURS, 128, qpn) if n % 3 else forged(OURS | (n // 3), 0, qpn)
                    for n in range(CQE + 1))
    consumer = 0
    while not stop.is_set():
        ring[DATA:DATA + len(page)] = page
        consumer += 1
        struct.pack_into("<I", ring, CONSUMER, consumer)


def forge(wc):
    """What is asked for and never ends, as its completions are written over."""
    receives, sends = make_pairs()
    for fd in receives:
        quietly(os.read, fd, 100)
    for fd in sends:
        quietly(os.write, fd, b"mine")
    for _ in range(100):
        quietly(os.read, wc, 4096)
    unmake_pairs(receives + sends)


def main():
    os.chdir(sys.argv[1])
    os.mkdir("pd/forge")
    os.mkdir("cq/forge")
    write("pd/forge/ctl", "create device=rxe1\n")
    write("cq/forge/ctl", f"create device=rxe1 cqe={CQE}\n")
    ring = ring_of("cq/forge/ring")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    thread = threading.Thread(target=scribble, args=(ring, int(sys.argv[2], 0), stop))
    thread.start()
    wc = os.open("cq/forge/wc", os.O_RDONLY | os.O_NONBLOCK)
    rounds = 0
    while not stop.is_set():
        forge(wc)
        rounds += 1
        if rounds == 3:
            print("forging", flush=True)
    thread.join()
    os.close(wc)
    os.rmdir("cq/forge")
    os.rmdir("pd/forge")


main()
