# SPDX-License-Identifier: BSD-2-Clause
# Communication management below the tree, in a clock of its own: tests/cm.c.
load helpers

cm() { "$BUILD/tests/cm" "$1"; }

@test "cm: a connection is made, is told what was agreed, and ends" { cm connect; }
@test "cm: both ends disconnect at once" { cm both_disconnect; }
@test "cm: nobody listens" { cm nobody_listens; }
@test "cm: who listens refuses" { cm refused; }
@test "cm: a service is listened for once" { cm listen_twice; }
@test "cm: a lost REQ is sent again" { cm lost_req; }
@test "cm: a lost REP is sent again" { cm lost_rep; }
@test "cm: a lost RTU is sent again when the REP comes again" { cm lost_rtu; }
@test "cm: data before the RTU establishes it" { cm established; }
@test "cm: nobody answers" { cm unreachable; }
@test "cm: an MRA gives more time" { cm mra; }
@test "cm: who gives up says so" { cm gives_up; }
@test "cm: a QP that connects anew ends its stale connection" { cm stale; }
@test "cm: an end that is freed tells the other" { cm free; }
@test "cm: a lost DREQ is sent again" { cm lost_dreq; }
@test "cm: a device that goes" { cm gone; }
@test "cm: requests that can't be are refused, with the reason" { cm bad_requests; }
@test "cm: a datagram service is asked for, and answers" { cm sidr; }
@test "cm: a datagram service that isn't there, or refuses" { cm sidr_refused; }
@test "cm: a lost question for a datagram service is asked again" { cm sidr_lost; }
@test "cm: a datagram service that doesn't answer" { cm sidr_unreachable; }
@test "cm: a datagram service's device that goes" { cm sidr_gone; }
@test "cm: nonsense breaks nothing" { cm nonsense; }
