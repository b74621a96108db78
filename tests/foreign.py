# SPDX-License-Identifier: BSD-2-Clause
"""Objects of other devices and of other kinds in commands: foreign.py TREE SOURCE DEVICE...

Makes one object of each kind on each device, and then, for every command of ctl
and post that names objects, gives each argument each device's object, and each
other kind's. What mixes devices has to be refused with EINVAL, naming the
argument, the object and both devices; what names another kind with ENOENT; what
is all of one device is not refused for that. Nothing is left behind. SOURCE is
where the daemon's sources are: no argument that they look up is left out here.
Prints what went wrong, and last how many lines were refused.
"""
import errno
import glob
import itertools
import os
import re
import sys

KINDS = ["pd", "xrcd", "cq", "mr", "mw", "srq", "ah", "qp"]
RC = {"pd": "pd", "cq": "cq", "recv_cq": "cq", "srq": "srq", "xrcd": "xrcd"}

# kind of the command's object, its line, and its arguments that name objects: key and kind.
CREATE = [
    ("mr", "create size=4K", {"pd": "pd"}),
    ("mw", "create type=1", {"pd": "pd"}),
    ("srq", "create wr=4 sge=1", {"pd": "pd", "cq": "cq"}),
    ("srq", "create wr=4 sge=1", {"pd": "pd", "xrcd": "xrcd", "cq": "cq"}),
    ("ah", "create lid=1", {"pd": "pd"}),
    ("ah", "create slid=1 offset=0", {"pd": "pd", "grh": "mr"}),
    ("qp", "create type=rc", RC),
    ("qp", "create type=rc", {"pd": "pd", "cq": "cq", "recv_cq": "cq", "srq": "srq"}),
    ("qp", "create type=ud", {"pd": "pd", "cq": "cq", "recv_cq": "cq", "srq": "srq"}),
    ("qp", "create type=xrc_ini", {"pd": "pd", "cq": "cq"}),
    ("qp", "create type=xrc_tgt", {"xrcd": "xrcd", "pd": "pd", "cq": "cq", "srq": "srq"}),
    ("qp", "create type=xrc_tgt open=0x123", {"xrcd": "xrcd", "pd": "pd", "cq": "cq"}),
    ("mcast", "create gid=ff12::77", {"qp": "qp"}),
]
# The same of objects that are there: their file and which of them.
COMMANDS = [("mr", "mr", "ctl", "rereg access=local_write", {"pd": "pd"})]
COMMANDS += [(qp, "qp", "post", line, {"mr": "mr"}) for qp in ("qp", "ud") for line in (
    "recv", "send", "send inline", "send_with_imm imm=1", "send_with_inv key=1",
    "write raddr=0 rkey=1", "write_with_imm raddr=0 rkey=1", "read raddr=0 rkey=1",
    "read_with_inv raddr=0 rkey=1 key=1", "cmp_and_swp raddr=0 rkey=1", "fetch_and_add raddr=0 rkey=1",
    "masked_cmp_and_swp raddr=0 rkey=1", "masked_fetch_and_add raddr=0 rkey=1",
    "fast_reg pages=0")]
COMMANDS += [
    ("qp", "qp", "post", "send mr=$mr", {"mr": "mr"}),      # the second of a list
    ("qp", "qp", "post", "bind_mw", {"mw": "mw", "mr": "mr"}),
    ("ud", "qp", "post", "send qpn=1", {"ah": "ah", "mr": "mr"}),
    ("ud", "qp", "post", "lso qpn=1 header=00 mss=1000", {"ah": "ah", "mr": "mr"}),
    ("srq", "srq", "post", "recv", {"mr": "mr"}),
]
REFUSED = re.compile(r"(\w+)=(\S+) is of device (\S+), but (\S+)[=/](\S+) of ([^\s,]+)")

wrong = []
refusals = 0


def write(file, line):
    """None, or the errno."""
    fd = os.open(file, os.O_WRONLY)
    try:
        os.write(fd, line.encode())
        return None
    except OSError as error:
        return error.errno
    finally:
        os.close(fd)


def read(file):
    with open(file, errors="replace") as text:
        return text.read()


def reason(directory):
    """Why the last command was refused."""
    found = re.search(r"^refused (.*)$", read(directory + "/status"), re.M)
    return found[1] if found else ""


class Device:
    """A device and what was made on it: by kind, a name."""

    def __init__(self, name):
        self.name = name
        self.has = {}
        self.make("pd", f"create device={name}")
        self.make("cq", f"create device={name} cqe=64")
        self.make("xrcd", f"create device={name}")
        pd = self.has["pd"]
        self.make("mr", f"create pd={pd} size=64K access=local_write,mw_bind")
        self.make("mw", f"create pd={pd}")
        self.make("srq", f"create pd={pd} wr=8 sge=1")
        self.make("ah", f"create pd={pd} lid=1")
        self.make("qp", f"create type=rc pd={pd} cq={self.has['cq']}")
        self.make("qp", f"create type=ud pd={pd} cq={self.has['cq']}", "ud")

    def make(self, kind, line, key=None):
        key = key or kind
        name = f"{key}-{self.name}"
        os.mkdir(f"{kind}/{name}")
        err = write(f"{kind}/{name}/ctl", line)
        if err is None:
            self.has[key] = name
            return
        os.rmdir(f"{kind}/{name}")
        # A driver may have no such thing; what then isn't there can't be named.
        if err != errno.EOPNOTSUPP:
            wrong.append(f"{kind} on {self.name}: {os.strerror(err)}")

    def drop(self):
        for key in reversed(["pd", "xrcd", "cq", "mr", "mw", "srq", "ah", "qp", "ud"]):
            if key in self.has:
                os.rmdir(f"{'qp' if key == 'ud' else key}/{self.has[key]}")


def words(line, args):
    return " ".join([line] + [f"{key}={name}" for key, name in args.items()])


def check_mixed(directory, file, line, devices_of, own=None):
    """A line with objects of several devices: refused, and in which words."""
    global refusals
    err = write(f"{directory}/{file}", line)
    why = reason(directory)
    said = REFUSED.search(why)
    ok = err == errno.EINVAL and said
    if ok:
        key, name, device, key2, name2, device2 = said.groups()
        ok = (devices_of.get((key, name)) == device and device != device2 and
              (devices_of.get((key2, name2)) == device2 or
               (own and (f"{key2}/{name2}", device2) == own)))
        ok = ok and why.startswith(line.split()[0] + ": ")
    if ok:
        refusals += 1
    else:
        wrong.append(f"{directory}/{file}: {line!r}: {err and errno.errorcode[err]}: {why!r}")


def check_kinds(directory, file, line, args, devices):
    """Each argument named after an object of every other kind."""
    global refusals
    for key, kind in args.items():
        names = [name for device in devices for key2, name in device.has.items()
                 if ("qp" if key2 == "ud" else key2) != kind]
        names += [f"../{name.split('-')[0]}/{name}" for name in names] + ["..", ".", "clone", "0"]
        for name in names:
            given = {other: devices[0].has[k] for other, k in args.items() if k in devices[0].has}
            given[key] = name
            err = write(f"{directory}/{file}", words(line, given))
            why = reason(directory)
            if err == errno.ENOENT and f"no {kind}/{name}" in why:
                refusals += 1
            else:
                wrong.append(f"{directory}/{file}: {words(line, given)!r}: {err}: {why!r}")


def assignments(args, devices):
    """Of each argument the device whose object it is."""
    able = [[device for device in devices if kind in device.has] for kind in args.values()]
    return itertools.product(*able)


def check_create(kind, line, args, devices):
    directory = f"{kind}/new"
    os.mkdir(directory)
    check_kinds(directory, "ctl", line, args, devices)
    before = read(directory + "/status").splitlines()[:-1]
    for chosen in assignments(args, devices):
        given = {key: device.has[k] for (key, k), device in zip(args.items(), chosen)}
        if len(set(chosen)) > 1:
            devices_of = {(key, given[key]): device.name for key, device in zip(args, chosen)}
            check_mixed(directory, "ctl", words(line, given), devices_of)
            if read(directory + "/status").splitlines()[:-1] != before:
                wrong.append(f"{directory}: {words(line, given)!r} changed it")
            continue
        # Its device is the objects', whatever it was refused with before.
        err = write(directory + "/ctl", words(line, given))
        if err and REFUSED.search(reason(directory)):
            wrong.append(f"{directory}: {words(line, given)!r}: {reason(directory)!r}")
        if not err:
            os.rmdir(directory)
            os.mkdir(directory)
    os.rmdir(directory)


def check_command(which, kind, file, line, args, devices):
    for own in devices:
        if which not in own.has:
            continue
        directory = f"{kind}/{own.has[which]}"
        text = line.replace("$mr", own.has["mr"])
        check_kinds(directory, file, text, args, [own])
        before = [text for text in read(directory + "/status").splitlines() if not text.startswith("refused")]
        for chosen in assignments(args, devices):
            given = {key: device.has[k] for (key, k), device in zip(args.items(), chosen)}
            if set(chosen) == {own}:
                continue
            devices_of = {(key, given[key]): device.name for key, device in zip(args, chosen)}
            check_mixed(directory, file, words(text, given), devices_of, (directory, own.name))
        after = [text for text in read(directory + "/status").splitlines() if not text.startswith("refused")]
        if before != after:
            wrong.append(f"{directory}: {text!r} changed it from {before} to {after}")


def check_peers(devices):
    """A QP may be connected to another device's, if one fabric has both."""
    fabrics = {device.name: os.path.exists(f"{device.name}/1/pcap") for device in devices}
    for a, b in itertools.permutations(devices, 2):
        if fabrics[a.name] != fabrics[b.name]:
            check_mixed(f"qp/{a.has['qp']}", "ctl", f"connect peer={b.has['qp']}",
                        {("peer", b.has["qp"]): b.name}, (f"qp/{a.has['qp']}", a.name))
        for qp in (a, b):
            if "state reset" not in read(f"qp/{qp.has['qp']}/status"):
                wrong.append(f"{qp.has['qp']} is not in reset")
    check_kinds(f"qp/{devices[0].has['qp']}", "ctl", "connect", {"peer": "qp"}, devices[:1])


def check_complete(source):
    """Every argument by which the daemon looks up an object stands above."""
    here = {(key, kind) for command in CREATE + COMMANDS for key, kind in command[-1].items()}
    here.add(("peer", "qp"))
    there = set()
    for file in glob.glob(source + "/src/fs/*.c"):
        text = read(file)
        there |= {(key, kind.lower()) for key, kind in
                  re.findall(r'\barg_obj\(args, "(\w+)", OBJ_(\w+)', text)}
        there |= {(key, "qp") for key in re.findall(r'\barg_peer\(args, "(\w+)"', text)}
        loose = re.findall(r'\b(?:arg_obj|arg_peer)\(args, [^"].*', text)
        if loose and not file.endswith("obj_args.c"):
            wrong.append(f"{file}: {loose}")
    if here != there:
        wrong.append(f"only here: {here - there}; only in the daemon: {there - here}")


def main():
    os.chdir(sys.argv[1])
    check_complete(sys.argv[2])
    pinned = read("pinned")
    devices = [Device(name) for name in sys.argv[3:]]
    listed = {kind: sorted(os.listdir(kind)) for kind in KINDS + ["mcast"]}
    held = read("pinned")
    for kind, line, args in CREATE:
        check_create(kind, line, args, devices)
    for command in COMMANDS:
        check_command(*command, devices)
    check_peers(devices)
    for kind, names in listed.items():
        if sorted(os.listdir(kind)) != names:
            wrong.append(f"{kind}/ has {os.listdir(kind)}")
    if read("pinned") != held:
        wrong.append(f"pinned: {read('pinned')!r}, not {held!r}")
    for device in devices:
        status = read(f"cq/{device.has['cq']}/status")
        if "waiting 0" not in status:
            wrong.append(f"completions on {device.name}: {status!r}")
        device.drop()
    if read("pinned") != pinned:
        wrong.append(f"pinned in the end: {read('pinned')!r}")
    print(*wrong[:40], sep="\n", end="\n" if wrong else "")
    print(f"{refusals} refused, {len(wrong)} wrong")


main()
