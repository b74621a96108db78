# SPDX-License-Identifier: BSD-2-Clause
"""Rings of the tree, mapped: rings.py TREE COMMAND...

Each command is a line of words, done in order:
  send QP WR_ID MR LENGTH [QPN QKEY AH]  a SEND in the QP's sq, and the doorbell
  bad QP WR_ID                           a request that can't be, in the same way
  recv QP WR_ID MR OFFSET                a receive request in the QP's rq
  srq SRQ WR_ID MR OFFSET                and in the SRQ's ring
  wc CQ                                  prints "WR_ID STATUS BYTE_LEN" of the next in its ring
Who produced rings when the ring says that it has to be. Layout: rdma/rdma_user_rxe.h.
"""
import ctypes
import os
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
PRODUCER, CONSUMER, DATA = 128, 256, 384


def mapped(fd, size):
    """Python's own mmap wants to know the size of the file."""
    where = LIBC.mmap(None, ctypes.c_size_t(size), 3, 1, fd, ctypes.c_long(0))
    if where == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return memoryview((ctypes.c_char * size).from_address(where)).cast("B")


class Ring:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR)
        self.log2, self.mask = struct.unpack_from("<II", mapped(self.fd, DATA))
        self.map = mapped(self.fd, DATA + ((self.mask + 1) << self.log2))

    def index(self, which):
        return struct.unpack_from("<I", self.map, which)[0]

    def move(self, which):
        struct.pack_into("<I", self.map, which, (self.index(which) + 1) & self.mask)

    def slot(self, which):
        return DATA + ((self.index(which) & self.mask) << self.log2)

    def produce(self, request):
        at = self.slot(PRODUCER)
        self.map[at:at + len(request)] = request
        self.move(PRODUCER)
        if struct.unpack_from("<I", self.map, 8)[0]:
            os.write(self.fd, b"\n")

    def consume(self):
        end = time.monotonic() + 20
        while self.index(PRODUCER) == self.index(CONSUMER):
            if time.monotonic() > end:
                sys.exit("no completion")
            time.sleep(0.001)
        at = self.slot(CONSUMER)
        wr_id, status, _, _, byte_len = struct.unpack_from("<QIIII", self.map, at)
        self.move(CONSUMER)
        print(wr_id, status, byte_len)


rings = {}


def ring(path):
    if path not in rings:
        rings[path] = Ring(path)
    return rings[path]


def lkey(mr):
    with open(f"mr/{mr}/lkey") as file:
        return int(file.read(), 0)


def send(qp, wr_id, mr, length, qpn="0", qkey="0", ah="0"):
    wr = struct.pack("<QIIIIIIHHI", int(wr_id), 0, 2, 2, 0, int(qpn, 0), int(qkey, 0), 0, 0, int(ah))
    dma = struct.pack("<IIIIII", int(length), 0, 0, 1, 0, 0)
    ring(f"qp/{qp}/sq").produce(wr.ljust(184, b"\0") + dma +
                                struct.pack("<QII", 0, int(length), lkey(mr)))


def bad(qp, wr_id):
    ring(f"qp/{qp}/sq").produce(struct.pack("<QIII", int(wr_id), 0, 99, 2).ljust(208, b"\0"))


def receive(path, wr_id, mr, offset):
    dma = struct.pack("<IIIIII", 1000, 0, 0, 1, 0, 0)
    ring(path).produce(struct.pack("<QII", int(wr_id), 0, 0) + dma +
                       struct.pack("<QII", int(offset), 1000, lkey(mr)))


COMMANDS = {
    "send": send, "bad": bad,
    "recv": lambda qp, *rest: receive(f"qp/{qp}/rq", *rest),
    "srq": lambda srq, *rest: receive(f"srq/{srq}/ring", *rest),
    "wc": lambda cq: ring(f"cq/{cq}/ring").consume(),
}

os.chdir(sys.argv[1])
for command in sys.argv[2:]:
    name, *words = command.split()
    COMMANDS[name](*words)
