#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# The static subnet, without a daemon: from each switch a LID's packets arrive
# where the LID is.

load helpers

# routes NODES GENTOPO-ARGUMENTS...
routes()
{
	local nodes=$1
	shift
	ctest gentopo "$@" >"$BATS_TEST_TMPDIR/t.net"
	run ctest topology load "$BATS_TEST_TMPDIR/t.net"
	assert_line "^$nodes nodes"
	run ctest topology routes "$BATS_TEST_TMPDIR/t.net"
	assert_status 0
	assert_line "^$nodes end ports, [1-9][0-9]* routes, 0 wrong\$"
}

@test "LIDs, shortest routes, refresh, multicast trees, random fabrics" {
	local seed
	for seed in 1 2 3; do
		run ctest static "$seed"
		assert_status 0
	done
}

@test "a fat tree of 98 nodes" {
	routes 98 fat2 5 18 3
	# 6 cables to each spine, 80 routes to others' LIDs: none idle, none far above the rest.
	assert_line '^routes by one cable between switches: [1-9][0-9]* to [1-9][0-9]*$'
}

@test "a fat tree of 1116 nodes" {
	routes 1116 fat3 3
}

@test "a fat tree of 5166 nodes" {
	routes 5166 fat3 14
}

@test "a torus" {
	routes 300 torus 5 5 4 2
}

@test "40,000 nodes load and get routes within a gigabyte" {
	ctest gentopo fat3 37 64 >"$BATS_TEST_TMPDIR/t.net"
	local limit=(prlimit --as=$((1 << 30)))
	# A sanitizer reserves more than there is.
	case $BUILD in *sanitize*) limit=() ;; esac
	run "${limit[@]}" "$BUILD/bench/load" "$BATS_TEST_TMPDIR/t.net"
	assert_status 0
	assert_line ': 40[0-9]* nodes, load '
}

@test "the LIDs that a file gives stay" {
	run ctest topology routes "$TOP/conf/dual-port.net"
	assert_status 0
	assert_line '^10 end ports, 20 routes, 0 wrong$'
}
