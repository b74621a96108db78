# SPDX-License-Identifier: BSD-2-Clause
# QPs of types SMI, GSI and raw packet, and reads with invalidate: tests/verbs_special.c.
load helpers

special() { "$BUILD/tests/verbs_special" "$1"; }

@test "gsi: asks and is answered" { special gsi; }
@test "gsi: beside the MAD agents" { special beside_agents; }
@test "smi: directed routes" { special smi; }
@test "smi, gsi: one of each a port" { special exclusive; }
@test "raw packets of both kinds" { special raw; }
@test "raw packets that never leave" { special raw_errors; }
@test "a read that invalidates its sink" { special read_inv; }
