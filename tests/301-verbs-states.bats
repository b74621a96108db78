# SPDX-License-Identifier: BSD-2-Clause
# The QP state machine: tests/verbs_states.c.
load helpers

states() { "$BUILD/tests/verbs_states" "$1"; }

@test "qp states: every pair of every type" { states pairs; }
@test "qp states: every optional attribute" { states optional; }
@test "qp states: values, and query gives them back" { states values; }
@test "qp: limits" { states limits; }
