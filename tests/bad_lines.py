# SPDX-License-Identifier: BSD-2-Clause
"""Lines that no ctl, post or limit file of the tree can take: bad_lines.py TREE SEED COUNT.

Each begins as a line that could be right and is then spoiled in one way, or is
noise. Each has to be refused, with an errno and in words, and the tree has to
stay as it was: all of its text is compared every so often. Prints what went
wrong, and last how many lines there were.
"""
import errno
import os
import random
import sys

# What a value may be: the largest number, or one of these.
NAME, GID, WORDS, HEX = "name", "gid", "words", "hex"
U8, U16, U32, U63, U64 = (1 << 8) - 1, (1 << 16) - 1, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1

AV = {"lid": U16, "sl": 15, "path_bits": 127, "static_rate": U8, "gid": GID}
QP = dict(AV, port=U8, pkey=U16, qkey=U32, qpn=U32, rq_psn=U32, sq_psn=U32, psn=U32, timeout=U8,
          retry_cnt=U8, rnr_retry=U8, min_rnr_timer=U8, max_rd_atomic=U8, max_dest_rd_atomic=U8,
          sqd_event=1, alt_port=U8, alt_lid=U16, alt_timeout=U8, mtu=WORDS, access=WORDS,
          path_mig=WORDS, cur_state=WORDS)
REMOTE = {"raddr": U64, "rkey": U32}
SEND = {"mr": NAME, "wr_id": U63, "imm": U32}

# Of each file: its commands, what they need and what they may have.
OBJECTS = {
    "pd": {"create": ({"device": NAME}, {})},
    "xrcd": {"create": ({"device": NAME}, {})},
    "cq": {"create": ({"device": NAME, "cqe": U32}, {}), "resize": ({"cqe": U32}, {}),
           "moderate": ({}, {"count": U16, "period": U16}), "notify": ({}, {}),
           "notify_at": ({"count": U32}, {})},
    "mr": {"create": ({"pd": NAME, "size": U63},
                      {"iova": U64, "access": WORDS, "max_pages": 4096}),
           "rereg": ({}, {"pd": NAME, "access": WORDS})},
    "mw": {"create": ({"pd": NAME}, {"type": 2})},
    "srq": {"create": ({"pd": NAME}, {"wr": U32, "sge": U32, "xrcd": NAME, "cq": NAME}),
            "resize": ({"wr": U32}, {})},
    "ah": {"create": ({"pd": NAME}, dict(AV, port=U8)), "modify": ({}, dict(AV, port=U8))},
    "mcast": {"create": ({"qp": NAME, "gid": GID}, {"lid": U16})},
    "qp": {"create": ({"pd": NAME, "cq": NAME},
                      {"type": WORDS, "sq": U32, "rq": U32, "sge": U32, "inline": U32, "srq": NAME}),
           "connect": ({"peer": NAME}, QP), "init": ({}, QP), "rtr": ({"lid": U16, "qpn": U32}, QP),
           "rts": ({}, QP), "sqd": ({}, QP), "err": ({}, {}), "reset": ({}, {}),
           "modify": ({}, QP)},
}
POST = {
    "send": (SEND, {}), "send_with_imm": (SEND, {}), "send_with_inv": (SEND, {"key": U32}),
    "write": (dict(SEND, **REMOTE), {}), "write_with_imm": (dict(SEND, **REMOTE), {}),
    "read": (dict(SEND, **REMOTE), {}), "recv": ({"mr": NAME}, {"wr_id": U63}),
    "fetch_and_add": (dict(SEND, **REMOTE), {"add": U64}),
    "cmp_and_swp": (dict(SEND, **REMOTE), {"compare": U64, "swap": U64}),
    "bind_mw": ({"mw": NAME, "mr": NAME}, {"offset": U64, "access": WORDS}),
    "fast_reg": ({"mr": NAME, "pages": HEX}, {"iova": U64, "page_shift": 31, "access": WORDS}),
    "local_inv": ({}, {"key": U32}),
}
SRQ_POST = {"recv": ({"mr": NAME}, {"wr_id": U63})}

# Lines for which this is enough: each is wrong as it stands.
PLAIN = {
    "fabric/ctl": ["device", "device %s", "device rxe0", "device s1 %s", "device s1 name=rxe0",
                   "undevice %s", "undevice", "remove %s", "remove", "remove a b", "link rxe0:1 s1:5",
                   "link rxe0:%s s1:5", "link s1:5", "link s1:255 s1:6", "unlink %s", "unlink",
                   "ca %s 0", "ca %s 255", "ca %s", "ca rxe0 1", "ca %s 1 1", "switch %s zz", "%s"],
    "rxe0/ctl": ["remove %s", "%s", "Remove"],
    "rxe0/1/ctl": ["shutdown %s", "init_type 16", "init_type", "init_type %s", "reset_qkey_cntr 1",
                   "set_cap %s", "set_cap -1", "set_cap 0x100000000", "clr_cap", "%s"],
    "LINK": ["down %s", "up now", "faults", "faults on", "width 3X", "width", "width %s",
             "speed %s", "speed", "drop=2", "drop=-1", "drop=%s", "delay=5parsecs", "delay=-1",
             "seed=%s", "drop=0.1 %s", "jitter=1h"],
    "srq/s/limit": ["-1", "%s", "4294967296", "0x", "1000000", "1 2"],
    "MAD": ["register %s", "register class=%s", "register class=0x1000",
            "unregister %s", "%s", "smp", "smp get", "smp get %s", "smp get NodeInfo lid=%s",
            "smp put NodeInfo lid=1", "perf get NodeInfo lid=1", "sa get %s"],
}
BAD_NUMBERS = ["-1", "0x", "zz", "0x1g", "1e9", "", "+", "1,2", "99999999999999999999999", "0b1", "1.5"]
EVERY = 250  # lines from one look at the whole tree to the next
SKIPPED = {"errors", "events", "metrics", "wc", "recv", "send", "ring", "sq", "rq", "clone", "umad",
           "issm", "uverbs", "pcap", "query", "counters", "hw_counters", "dev", "sys", "ctl", "post",
           "data", "mad", "README", "ipoib", "peer", "rdma_cm"}


def word(n=8):
    return "".join(random.choice("abcdefghijklmnopqrstuvwxyz_") for _ in range(n)) + "!"


NAMES = {"device": "rxe0", "pd": "p0", "cq": "c0", "mr": "m0", "mw": "w", "srq": "s", "xrcd": "x",
         "qp": "u", "peer": "b"}
GOOD_WORDS = {"type": "rc", "mtu": "1024", "path_mig": "rearm", "cur_state": "rts"}


def good(key, kind):
    if isinstance(kind, int):
        return str(random.randrange(min(kind, 60) + 1))
    if kind is NAME:
        return NAMES[key]
    if kind is WORDS:
        return GOOD_WORDS.get(key, "local_write")
    return {GID: "ff12::1", HEX: "0x1000"}[kind]


def bad(kind):
    """A value that is none of its kind."""
    if kind is NAME:
        return random.choice([word(), "4000000000", "-1", "", "..", "clone", "a/b"])
    if kind is GID:
        return random.choice(["::::", "10.0.0.1", "", word(), "fe80::g"])
    if kind is WORDS:
        return random.choice([word(), "local_write,,", ",", "local_write;remote_read"])
    if kind is HEX:
        return random.choice([word(), "0x1000;", "1000,x", "-1", ",", ""])
    return random.choice(BAD_NUMBERS + [str(kind + 1), hex(kind + 1), str(kind * 16 + 16)])


def spoiled(commands):
    """A line of these commands with one thing wrong, or more."""
    verb = random.choice(list(commands))
    needed, optional = commands[verb]
    keys = dict(needed)
    for key in random.sample(sorted(optional), min(len(optional), random.randrange(4))):
        keys[key] = optional[key]
    args = [[key, good(key, kind)] for key, kind in keys.items()]
    random.shuffle(args)
    ways = ["verb", "key", "noise", "twice"] + ["value"] * 4
    if needed and verb not in ("connect", "rtr"):
        ways.append("missing")
    way = random.choice(ways)
    if way == "verb":
        verb = random.choice([word(), verb.upper(), verb + "s", "-", "=", verb[:-1] + "?"])
    elif way == "value" and args:
        arg = random.choice(args)
        arg[1] = bad(keys[arg[0]])
    elif way == "twice" and args:
        arg = random.choice(args)
        # All but mr=, which makes a list, can stand there once.
        args.append(arg if arg[0] not in ("mr", "access") else [word(), "1"])
    elif way == "missing":
        gone = random.choice(sorted(needed))
        args = [arg for arg in args if arg[0] != gone] + [[word(), "1"]]
    elif way == "noise":
        args.append([word(), bytes(random.randrange(128, 256) for _ in range(9)).decode("latin-1")])
    else:
        args.append([word(), "1"])
    return " ".join([verb] + ["=".join(arg) for arg in args])


def text_of(path, refusals=False):
    try:
        with open(path, errors="replace") as file:
            return [line for line in file.read().split("\n")
                    if refusals or not line.startswith("refused ")]
    except OSError as error:
        return [os.strerror(error.errno)]


def dump():
    """All text of the tree that doesn't wait for anything."""
    texts = {}
    for where, dirs, files in os.walk("."):
        dirs[:] = sorted(name for name in dirs if name not in SKIPPED)
        for name in sorted(files):
            if name not in SKIPPED:
                texts[where + "/" + name] = text_of(where + "/" + name)
    return texts


def targets(mad):
    """Pairs of a file and what makes a line for it."""
    files = []
    for kind, commands in OBJECTS.items():
        for name in sorted(os.listdir(kind)):
            if name != "clone":
                files.append((f"{kind}/{name}/ctl", lambda commands=commands: spoiled(commands)))
    for qp in sorted(os.listdir("qp")):
        if qp != "clone":
            # One that can send has more to go wrong.
            files += [(f"qp/{qp}/post", lambda: spoiled(POST))] * (6 if qp == "a" else 1)
    files.append(("srq/s/post", lambda: spoiled(SRQ_POST)))
    # A daemon whose devices are the system's has no fabric.
    links = [f"fabric/links/{name}/ctl" for name in sorted(os.listdir("fabric/links"))]
    for file, lines in PLAIN.items():
        if file in ("LINK", "fabric/ctl") and not links:
            continue
        file = {"MAD": mad, "LINK": links[0] if links else None}.get(file, file)
        files.append((file, lambda lines=lines: random.choice(lines).replace("%s", word())))
    return files


def said(file, error):
    """Is the errno's name and a reason the last line of errors, and the reason in the object's status?"""
    with open("errors", errors="replace") as errors:
        name, _, why = errors.read().rstrip("\n").rpartition("\n")[2].partition(": ")
    # EOPNOTSUPP has two names.
    if getattr(errno, name) != error.errno or not why:
        return False
    if file.split("/")[0] not in OBJECTS:
        return True
    reasons = [line[8:] for line in text_of(os.path.dirname(file) + "/status", True)
               if line.startswith("refused ")]
    return len(reasons) == 1 and why.startswith(os.path.dirname(file) + ": " + reasons[0])


def refused(file, line, mad_fd):
    fd = mad_fd if mad_fd is not None else os.open(file, os.O_WRONLY)
    try:
        os.write(fd, line.encode("latin-1"))
        print(f"taken: {file}: {line!r}")
        return False
    except OSError as error:
        if said(file, error):
            return True
        print(f"{error}, without its words: {file}: {line!r}")
        return False
    finally:
        if mad_fd is None:
            os.close(fd)


def main():
    os.chdir(sys.argv[1])
    random.seed(int(sys.argv[2]))
    mad_fd = os.open("rxe1/1/mad/clone", os.O_RDWR)
    mad = f"rxe1/1/mad/{os.read(mad_fd, 20).decode().strip()}/ctl"
    files = targets(mad)
    before = dump()
    count = ok = 0
    since = []
    for count in range(1, int(sys.argv[3]) + 1):
        file, make = random.choice(files)
        line = make()
        since.append(f"{file}: {line!r}")
        ok += refused(file, line, mad_fd if file == mad else None)
        if count % EVERY == 0:
            after = dump()
            for path in sorted(set(before) | set(after)):
                if before.get(path) != after.get(path):
                    print(f"{path} changed from {before.get(path)} to {after.get(path)} by one of:", *since, sep="\n  ")
            before = after
            since = []
    print(f"{ok} of {count} refused, {len(before)} files as before")


main()
