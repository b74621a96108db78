# SPDX-License-Identifier: BSD-2-Clause
# Soft devices below the tree: tests/soft_device.c.
load helpers

device() { "$BUILD/tests/soft_device" "$1"; }

@test "devices: names and numbers" { device names; }
@test "devices: attributes come from the node" { device attributes; }
@test "devices: link speeds in libibverbs' encoding" { device speeds; }
@test "devices: what can be modified" { device modify; }
@test "devices: events of their ports" { device events; }
@test "devices: counters have their fields' widths" { device counters; }
@test "devices: a node that is removed takes its device and agents along" { device node_removed; }
@test "devices: a switch's port 0" { device switch; }
@test "devices: two ports" { device two_ports; }
