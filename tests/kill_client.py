# SPDX-License-Identifier: BSD-2-Clause
"""A client to be killed: kill_client.py TREE MODE LID QPN RKEY.

Makes objects by clone files on rxe1, connects its QP to the one of that LID and
number, prints "NAME QPN RKEY" of its own QP and region, and goes on with what
MODE says until it is killed. RKEY is of the peer's region.
"""
import os
import sys

TREE, MODE, LID, QPN, RKEY = sys.argv[1:]


class Object:
    """An object of a kind that lives as long as its clone file is open."""

    def __init__(self, kind, line):
        self.fd = os.open(f"{TREE}/{kind}/clone", os.O_RDWR)
        self.name = os.read(self.fd, 20).decode().strip()
        self.path = f"{TREE}/{kind}/{self.name}"
        self.kind = kind
        self.do(line)

    def do(self, line, file=None):
        if not file:
            os.write(self.fd, line.encode())
            return
        with open(f"{self.path}/{file}", "wb", buffering=0) as out:
            out.write(line.encode())

    def read(self, file):
        with open(f"{self.path}/{file}", "rb", buffering=0) as data:
            return data.read(65536).decode(errors="replace")

    def close(self):
        os.close(self.fd)


def blocked(file):
    """Sleep in the read of a line or message that doesn't come."""
    while True:
        qp.read(file) if file == "recv" else cq.read(file)


def traffic(line):
    """One request after the other, its answer awaited."""
    while True:
        qp.do(line, "post")
        cq.read("wc")


def flood(line):
    """As many requests as the queue takes, and more when there is room."""
    while True:
        try:
            qp.do(line, "post")
        except OSError:
            cq.read("wc")


def churn():
    """Objects of every kind come and go."""
    while True:
        some = [Object("mr", f"create pd={pd.name} size=64K access=local_write,mw_bind,remote_read")]
        some.append(Object("srq", f"create pd={pd.name} wr=8 sge=1"))
        some.append(Object("mw", f"create pd={pd.name} type=1"))
        some.append(Object("ah", f"create pd={pd.name} lid={LID}"))
        some.append(Object("qp", f"create pd={pd.name} cq={cq.name} srq={some[1].name} type=ud"))
        some[-1].do("init qkey=1")
        some.append(Object("mcast", f"create qp={some[-1].name} gid=ff12::77"))
        some[1].do(f"recv mr={some[0].name}", "post")
        qp.do(f"bind_mw mw={some[2].name} mr={some[0].name}", "post")
        cq.read("wc")
        for one in some:
            one.close()


pd = Object("pd", "create device=rxe1")
cq = Object("cq", "create device=rxe1 cqe=256")
mr = Object("mr", f"create pd={pd.name} size=1M access=local_write,remote_write,remote_read,mw_bind")
qp = Object("qp", f"create pd={pd.name} cq={cq.name}")
qp.do(f"connect lid={LID} qpn={QPN} retry_cnt=7 timeout=14")
print(qp.name, qp.read("qpn").strip(), mr.read("rkey").strip(), flush=True)
{
    "wc": lambda: blocked("wc"),
    "recv": lambda: blocked("recv"),
    "read": lambda: traffic(f"read mr={mr.name} length=64K raddr=0 rkey={RKEY}"),
    "write": lambda: flood(f"write mr={mr.name} length=64K raddr=0 rkey={RKEY}"),
    "send": lambda: flood(f"send mr={mr.name} length=64K"),
    "churn": churn,
}[MODE]()
