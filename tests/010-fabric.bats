# SPDX-License-Identifier: BSD-2-Clause
# The fabric by itself, without files: C programs that build one and look at
# what reaches whom. Each test is a case of a program; see there.
load helpers

@test "unicast goes by the forwarding tables and is counted" { ctest fabric-forward unicast; }
@test "a wrong route loses the packet and counts it" { ctest fabric-forward wrong-route; }
@test "a port answers to 2^LMC LIDs" { ctest fabric-forward lmc; }
@test "a loop of forwarding tables ends" { ctest fabric-forward loop; }
@test "multicast reaches all members but the sender" { ctest fabric-forward multicast; }
@test "default multicast ports" { ctest fabric-forward multicast-default; }
@test "a multicast storm ends" { ctest fabric-forward multicast-storm; }
@test "SL to VL mapping" { ctest fabric-forward vl; }
@test "partition enforcement by switches" { ctest fabric-forward partitions; }
@test "packets over the MTU are discarded" { ctest fabric-forward mtu; }
@test "directed route packets go to the SMI" { ctest fabric-forward directed; }
@test "forwarding tables' bounds" { ctest fabric-forward tables; }

@test "the port state machine's table" { ctest fabric-ports states; }
@test "a switch's port 0 is always active" { ctest fabric-ports port0; }
@test "state changes are reported on both ends" { ctest fabric-ports events; }
@test "a disabled port keeps its neighbour polling" { ctest fabric-ports disable; }
@test "sleeping ports" { ctest fabric-ports sleep; }
@test "a cable pulled and put back" { ctest fabric-ports pulled; }
@test "links train to the best common width and speed" { ctest fabric-ports training; }
@test "what may pass in which state" { ctest fabric-ports traffic; }
@test "links: made, named, found, removed" { ctest fabric-ports links names-with-colons; }
@test "nodes: made, found, removed" { ctest fabric-ports nodes; }
@test "tables of P_Keys, GUIDs and VL arbitration" { ctest fabric-ports port-tables; }

@test "packets of many segments are cut as opcodes say" { ctest fabric-gso opcodes headers global; }
@test "what can't be cut is refused" { ctest fabric-gso refused single; }
@test "packets as memory" { ctest fabric-gso packet; }

@test "the example packet's ICRC" { ctest fabric-wire example; }
@test "what the ICRC leaves out" { ctest fabric-wire global; }
@test "raw packets have no ICRC" { ctest fabric-wire raw; }
@test "taps see each packet of the wire" { ctest fabric-wire taps; }
