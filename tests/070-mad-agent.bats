# SPDX-License-Identifier: BSD-2-Clause
# MAD agents below the tree, in a clock of their own: tests/mad_agent.c.
load helpers

agent() { "$BUILD/tests/mad_agent" "$1"; }

@test "agents: which registrations are refused" { agent register; }
@test "agents: overlapping registrations are refused" { agent overlap; }
@test "agents: vendor classes are told apart by their OUI" { agent vendor_oui; }
@test "agents: requests get the agent's TID, responses keep theirs" { agent tid; }
@test "agents: a response is matched by TID, class and address" { agent match; }
@test "agents: a response is matched by its path bits" { agent path_bits; }
@test "agents: a request times out after its retries, with its header" { agent timeout; }
@test "agents: a response stops the retries" { agent retry; }
@test "agents: without a timeout nothing is reported" { agent no_timeout; }
@test "agents: a TID in flight is refused" { agent duplicate; }
@test "agents: lengths and indices that can't be are refused" { agent lengths; }
@test "agents: an unclaimed Get or Set is answered, others dropped" { agent unclaimed; }
@test "agents: what doesn't fit its QP, class or version is dropped" { agent invalid; }
@test "agents: traps and their repressing" { agent trap; }
@test "agents: directed routes to oneself, a switch and another HCA" { agent directed_route; }
@test "agents: SMInfo goes to whoever registered for it" { agent sminfo; }
@test "agents: what is for the own LID stays inside" { agent own_lid; }
@test "agents: global routes" { agent grh; }
@test "agents: P_Keys are checked and told by their index" { agent pkey; }
@test "agents: unregistering cancels what is in flight" { agent unregister; }
@test "agents: unregistering from inside a callback" { agent unregister_inside; }
@test "agents: a device that goes tells its agents" { agent gone; }
@test "agents: 10,000 requests in flight" { agent outstanding; }
@test "agents: a response with a timeout waits, too" { agent response_timeout; }
@test "agents: why something failed is told in words" { agent reasons; }
@test "agents: an SL without a VL, and multicast, get a GMP nowhere" { agent undeliverable; }
