# SPDX-License-Identifier: BSD-2-Clause
# Doorbells by futex: threads that wait on each processor.

load helpers

@test "bells are heard from every processor, and spoilt, idle and dead ones harm nobody" {
	run "$BUILD/tests/bells"
	[ "$status" != 77 ] || skip "$output"
	echo "$output"
	[ "$status" = 0 ]
}
