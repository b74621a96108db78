# SPDX-License-Identifier: BSD-2-Clause
# Numbers that come round, packets that come twice, objects that go in the middle:
# tests/verbs_edges.c.
load helpers

edges() { "$BUILD/tests/verbs_edges" "$1"; }

@test "keys and QP numbers aren't used again soon" { edges keys; }
@test "a timer counts from the first packet that waits" { edges idle_timer; }
@test "a RNR NAK that comes twice" { edges double_rnr; }
@test "a NAK that comes twice" { edges double_nak; }
@test "what is sent again is acknowledged message by message" { edges again_acked; }
@test "reads leave PSNs to tell old from new" { edges psn_window; }
@test "a read that is asked for twice doesn't stop the next" { edges read_again; }
@test "responder resources are changed while in use" { edges fewer_resources; }
@test "an XRC SRQ goes in the middle of a message" { edges xrc_cut; }
@test "checksums in memory that takes its time" { edges remote_csum; }
@test "headers of no version, and of no GID of the port" { edges headers; }
