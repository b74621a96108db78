#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What readers of long files cost others: how long a read of a small file takes
# while some read fabric/topology, metrics, or a forwarding table, or list a large
# directory, again and again. The fabric has 6,480 HCAs. Prints the 99th percentile,
# which must be below 2 ms, beside what it is without them, and exits 1 when one is
# above it.
#
# usage: bench/readers.sh [SECONDS]	of each measurement (2 unless given)
set -u
# shellcheck source=bench/bench.bash
. "$(dirname "$0")/bench.bash"
seconds=${1:-2}

start()
{
	"$build/tests/gentopo" fat3 20 36 >"$work/net"
	cat >"$work/ibfs.conf" <<-END
	subnet = "static";
	topology = "$work/net";
	devices = ( $(awk -F'"' '/^Ca/ && n < 1000 { printf "%s{ name = \"rxe%d\"; node = \"%s\"; }", n ? "," : "", n, $2; n++ }' "$work/net") );
	END
	start_ibfs
}

# The 99th percentile of reads of a small file beside what runs, in us; the median in $median.
measure()
{
	read -r median p99 < <("$build/bench/read_rtt" "$mnt/rxe1/1/state" "$seconds")
	[ -n "$p99" ] || fail "$1: no result"
}

stop_readers()
{
	local pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	pids=()
}

# beside NAME COUNT COMMAND...: COUNT programs do that over and over.
beside()
{
	local name=$1 count=$2 i
	shift 2
	for ((i = 0; i < count; i++)); do
		# Files of a sort go on and on by themselves: dd reads again from the start.
		begin "reader$i" bash -c 'while :; do "$@" >/dev/null; done' reader "$@"
	done
	measure "$name"
	stop_readers
	printf '  %-44s median %s us\n' "$name" "$median"
	ratio "p99, us, beside $name" "$p99" 2000 max 1
}

start
measure "nothing"
printf 'FUSE reads of a small file: median %s us, p99 %s us\n' "$median" "$p99"
heading "with" "at most"
beside "a reader of fabric/topology" 1 cat "$mnt/fabric/topology"
beside "10 readers of fabric/topology" 10 cat "$mnt/fabric/topology"
beside "a reader of metrics" 1 cat "$mnt/metrics"
beside "a reader of a switch's lft" 1 cat "$mnt/fabric/switches/S-0008f10500000000/lft"
beside "a reader of fabric/nodes/" 1 ls -U "$mnt/fabric/nodes"
beside "a reader of fabric/switches/" 1 ls -U "$mnt/fabric/switches"
beside "a reader of fabric/links/" 1 ls -U "$mnt/fabric/links"
finish
