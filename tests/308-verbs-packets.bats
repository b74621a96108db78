# SPDX-License-Identifier: BSD-2-Clause
# Packets of anybody, nearly right and not at all: tests/verbs_packets.c. A
# failure says the seed to run alone.
load helpers

@test "nothing is read or written without key, domain, bounds and permission (300,000 packets)" {
	for seed in 1 2 3; do
		"$BUILD/tests/verbs_packets" $seed 100000 || fail "seed $seed"
	done
}
