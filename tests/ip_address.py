#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
# ip(8), $IP, whose `-j addr` also tells the link-layer addresses of IPoIB interfaces.
# They are TUN devices, of which the kernel knows none; the tree does. rdma-core's
# tests take a network interface for one only if it has such an address.
import glob
import json
import os
import subprocess
import sys

run = subprocess.run([os.environ['IP']] + sys.argv[1:], stdout=subprocess.PIPE)
out = run.stdout
if '-j' in sys.argv and out:
    links = json.loads(out)
    for link in links:
        known = glob.glob('/sys/class/infiniband/*/device/net/%s/address' % link.get('ifname'))
        if known and 'address' not in link:
            with open(known[0]) as f:
                link['address'] = f.read().strip()
    out = json.dumps(links).encode()
sys.stdout.buffer.write(out)
sys.exit(run.returncode)
