# SPDX-License-Identifier: BSD-2-Clause
# RMPP in the device, in a clock of its own: tests/mad_rmpp.c.
load helpers

rmpp() { "$BUILD/tests/mad_rmpp" "$1"; }

@test "rmpp: 0 bytes to 1 MiB, as response and as request, in each class" { rmpp sizes; }
@test "rmpp: a long request with a long response" { rmpp double_sided; }
@test "rmpp: on a link that drops packets" { rmpp loss; }
@test "rmpp: on a link that doubles packets" { rmpp duplicates; }
@test "rmpp: on a link that reorders packets" { rmpp reorder; }
@test "rmpp: on a link that corrupts packets" { rmpp corrupt; }
@test "rmpp: on a slow link" { rmpp delay; }
@test "rmpp: on a link with all faults" { rmpp all_faults; }
@test "rmpp: a request whose response comes in slowly isn't repeated" { rmpp slow_response; }
@test "rmpp: a sender without ACKs gives up after its retries" { rmpp sender_timeout; }
@test "rmpp: segments as they are on the wire" { rmpp raw_receiver; }
@test "rmpp: ACK, STOP and ABORT that are wrong end a message" { rmpp sender_errors; }
@test "rmpp: windows, early segments and repeated ones" { rmpp raw_sender; }
@test "rmpp: segments that are wrong are refused" { rmpp receiver_errors; }
@test "rmpp: a message has 40 seconds" { rmpp reassembly_time; }
@test "rmpp: agents that do their own get raw segments" { rmpp user_rmpp; }
@test "rmpp: what isn't active is one MAD" { rmpp not_active; }
@test "rmpp: 1,000 responses at once on a lossy link" { rmpp many; }
