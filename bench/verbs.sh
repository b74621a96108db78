#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The verbs engine, driven by a native client through mapped rings: two QPs on
# two adapters joined by a switch, against processes that pass a word to and fro
# and against memcpy, in one run. Prints ratios and what they must be; exits 1
# when one is missed. Client and engine need a processor each, and no other load.
#
# usage: bench/verbs.sh
set -u
# shellcheck source=bench/bench.bash
. "$(dirname "$0")/bench.bash"
verbs=$build/bench/verbs
rounds=5

# measure NAME least|most ARGUMENTS...: what bench/verbs says, and of several runs the best.
measure()
{
	local value
	value=$("${place[@]}" timeout 60 "$verbs" "${@:3}") || fail "verbs ${*:3}"
	best "$1" "$2" "$value"
}

run_asleep()
{
	set_placement "$1"
	start_ibfs
	for _ in $(seq $rounds); do
		measure futex least futex
		measure sleep least sleep "$mnt"
	done
	stop_daemon
	ratio "8-byte SEND, engine asleep, ns, $1" "${best[sleep]}" "${best[futex]}" max 6
	unset 'best[sleep]' 'best[futex]'
}

run_awake()
{
	set_placement free
	start_ibfs
	for _ in $(seq $rounds); do
		measure spin least spin
		measure busy least busy "$mnt"
		measure memcpy most memcpy 1048576
		measure write most write "$mnt" 1048576
		measure rate most rate "$mnt"
		measure idle most rate "$mnt" 1000
	done
	stop_daemon
	ratio "8-byte SEND, all spinning, ns" "${best[busy]}" "${best[spin]}" max 8
	ratio "1 MiB RDMA write / memcpy, MB/s" "${best[write]}" "${best[memcpy]}" min 0.8
	ratio "8-byte RDMA writes/s / 3 million" "${best[rate]}" 3000000 min 1
	ratio "the same beside 1,000 idle QPs" "${best[idle]}" "${best[rate]}" min 0.9
}

: >"$work/ibfs.conf"
heading "" peer
run_asleep pinned
run_asleep free
run_awake
finish
