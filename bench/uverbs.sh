#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Debian's programs on uverbs files: perftest between two adapters of one
# daemon, against processes that pass a word to and fro, memcpy, UCX over TCP
# and over shared memory, and qperf over TCP, in one run. Prints ratios and what
# they must be; exits 1 when one is missed. What is demanded is of shared memory:
# private memory, which the daemon reaches by a call for each piece, is measured
# beside it. Two clients that spin and the daemon want three processors.
#
# usage: bench/uverbs.sh [ROUNDS]	how often each is run (3)
set -u
# shellcheck source=bench/bench.bash
. "$(dirname "$0")/bench.bash"
rounds=${1:-3}
port=18700
shared=$(mktemp /dev/shm/ibfs-bench.XXXXXX)
truncate -s 64M "$shared" "$shared.peer"
server=
trap 'rm -f "$shared" "$shared.peer"; [ -z "$server" ] || kill "$server" 2>/dev/null; cleanup' EXIT

for tool in ib_write_bw qperf ucx_perftest ss; do
	command -v "$tool" >/dev/null || fail "$tool is missing"
done

listens() { ss -ltn | grep -q ":$port "; }

# serve COMMAND...: beside this script, until it listens at $port.
serve()
{
	port=$((port + 1))
	"${@//PORT/$port}" >"$work/server.log" 2>&1 &
	server=$!
	until listens; do
		kill -0 "$server" 2>/dev/null || fail "$*: $(tail -n 1 "$work/server.log")"
	done
}

# perftest MEMORY COLUMN TOOL OPTIONS...: that column of its last line of results, in $value.
perftest()
{
	local memory=$1 column=$2 ours=() theirs=()
	shift 2
	if [ "$memory" = shared ]; then
		ours=(--mmap="$shared")
		theirs=(--mmap="$shared.peer")
	fi
	serve timeout 60 "$build/ibfs-run" -m "$mnt" "$1" -d rxe0 -F -p PORT "${@:2}" "${theirs[@]}"
	timeout 60 "$build/ibfs-run" -m "$mnt" "$1" -d rxe1 -F -p "$port" "${@:2}" "${ours[@]}" \
		localhost >"$work/client.log" 2>&1
	wait "$server" || fail "$*: $(tail -n 1 "$work/server.log")"
	server=
	value=$(awk -v column="$column" '$1 ~ /^[0-9]+$/ && NF >= 5 { result = $column }
		END { print result }' "$work/client.log")
}

# ucx TRANSPORT COLUMN TEST OPTIONS...
ucx()
{
	local tls=$1 column=$2
	shift 2
	serve env UCX_TLS="$tls" timeout 60 ucx_perftest -t "$1" "${@:2}" -f -p PORT
	UCX_TLS=$tls timeout 60 ucx_perftest localhost -t "$1" "${@:2}" -f -p "$port" \
		>"$work/client.log" 2>&1
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=
	value=$(awk -v column="$column" '$1 ~ /^[0-9]+$/ && NF >= 7 { result = $column }
		END { print result }' "$work/client.log")
}

# qperf TEST OPTIONS...: ns, or MB/s
tcp()
{
	serve timeout 60 qperf -lp PORT
	timeout 60 qperf -lp "$port" -uu -t 1 "${@:2}" localhost "$1" >"$work/client.log" 2>&1
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=
	value=$(awk '/latency/ { print $3 } /bw/ && $2 == "=" { print $3 / 1e6 }' "$work/client.log")
}

references()
{
	best futex least "$("$build/bench/verbs" futex)"
	best memcpy65536 most "$("$build/bench/verbs" memcpy 65536)"
	best memcpy1048576 most "$("$build/bench/verbs" memcpy 1048576)"
	tcp tcp_lat -m 8
	best tcp least "$value"
	tcp tcp_bw -m 65536
	best tcp_bw most "$value"
	ucx tcp,self 2 tag_lat -s 8 -n 20000
	best ucx_tcp least "$(awk -v us="$value" 'BEGIN { print us * 1000 }')"
	ucx sm,self 2 tag_lat -s 8 -n 20000
	best ucx_sm least "$(awk -v us="$value" 'BEGIN { print us * 1000 }')"
}

# latency NAME MEMORY TOOL OPTIONS...: ns
latency()
{
	perftest "$2" 5 "${@:3}" -s 8 -n 5000
	best "$1" least "$(awk -v us="$value" 'BEGIN { print us * 1000 }')"
}

# bandwidth NAME MEMORY TOOL SIZE COUNT: perftest's MB are of 2^20 bytes
bandwidth()
{
	perftest "$2" 4 "$3" -s "$4" -n "$5"
	best "$1" most "$(awk -v mib="$value" 'BEGIN { print mib * 1.048576 }')"
}

# rate NAME MEMORY TOOL OPTIONS...: 8-byte messages a second, also in $rate
rate()
{
	perftest "$2" 5 "${@:3}" -s 8
	rate=$(awk -v m="$value" 'BEGIN { printf "%.0f", m * 1e6 }')
	best "$1" most "$rate"
}

# beside_busy COMMAND...: while two processes keep both processors busy.
beside_busy()
{
	local pid busy=()
	for _ in 1 2; do
		timeout 60 sh -c 'while :; do :; done' &
		busy+=($!)
	done
	"$@"
	for pid in "${busy[@]}"; do
		kill "$pid"
		wait "$pid" 2>/dev/null
	done
}

measure()
{
	local memory
	for memory in shared private; do
		latency "send$memory" "$memory" ib_send_lat
		latency "write$memory" "$memory" ib_write_lat
		latency "events$memory" "$memory" ib_send_lat -e
		bandwidth "write65536$memory" "$memory" ib_write_bw 65536 50000
		bandwidth "write1048576$memory" "$memory" ib_write_bw 1048576 5000
		bandwidth "read65536$memory" "$memory" ib_read_bw 65536 50000
		bandwidth "read1048576$memory" "$memory" ib_read_bw 1048576 5000
		rate "rate$memory" "$memory" ib_write_bw -n 1000000
		best "least$memory" least "$rate"
	done
	rate both private ib_send_bw -n 100000
	beside_busy rate busy shared ib_write_bw -n 100000
}

# By a daemon that gets no real-time priority.
measure_usual()
{
	stop_daemon
	echo 'realtime = false;' >"$work/ibfs.conf"
	start_ibfs
	for _ in $(seq "$rounds"); do
		latency usual_send shared ib_send_lat
		latency usual_write shared ib_write_lat
	done
}

# What nothing is demanded of.
report_private()
{
	local size
	measured "ib_send_lat 8 B / qperf tcp_lat, ns, private" "${best[sendprivate]}" "${best[tcp]}"
	measured "ib_write_lat 8 B / qperf tcp_lat, ns, private" "${best[writeprivate]}" "${best[tcp]}"
	measured "ib_send_lat -e 8 B / qperf tcp_lat, private" "${best[eventsprivate]}" "${best[tcp]}"
	for size in 65536 1048576; do
		measured "ib_write_bw $size / memcpy, MB/s, private" \
			"${best[write${size}private]}" "${best[memcpy$size]}"
		measured "ib_read_bw $size / memcpy, MB/s, private" \
			"${best[read${size}private]}" "${best[memcpy$size]}"
	done
}

report()
{
	local bound size
	# Where the daemon may run before others: half of TCP's, else as much.
	bound=1
	! chrt -f 1 true 2>/dev/null || bound=0.5
	ratio "ib_send_lat 8 B / qperf tcp_lat, ns" "${best[sendshared]}" "${best[tcp]}" max $bound
	ratio "ib_write_lat 8 B / qperf tcp_lat, ns" "${best[writeshared]}" "${best[tcp]}" max $bound
	ratio "ib_send_lat -e 8 B / qperf tcp_lat, ns" "${best[eventsshared]}" "${best[tcp]}" max 1.5
	ratio "ib_send_lat 8 B / UCX over TCP, ns" "${best[sendshared]}" "${best[ucx_tcp]}" max $bound
	ratio "ib_send_lat 8 B / qperf tcp_lat, usual priority" "${best[usual_send]}" "${best[tcp]}" max 1
	ratio "ib_write_lat 8 B / qperf tcp_lat, usual priority" "${best[usual_write]}" "${best[tcp]}" max 1
	for size in 65536 1048576; do
		ratio "ib_write_bw $size / memcpy, MB/s, shared" \
			"${best[write${size}shared]}" "${best[memcpy$size]}" min 0.7
		ratio "ib_read_bw $size / memcpy, MB/s, shared" \
			"${best[read${size}shared]}" "${best[memcpy$size]}" min 0.7
	done
	ratio "ib_write_bw 8 B messages/s / 2 million" "${best[rateshared]}" 2000000 min 1
	report_private
	printf '%-46s %12s\n' "beside: 8-byte messages/s, private" "${best[rateprivate]}" \
		"the worst rounds: shared" "${best[leastshared]}" "private" "${best[leastprivate]}" \
		"ib_send_bw, where both ends spin, private" "${best[both]}" \
		"ib_write_bw beside two busy processes" "${best[busy]}" \
		"futex to and fro, ns" "${best[futex]}" "UCX over shared memory, ns" "${best[ucx_sm]}" \
		"qperf tcp_bw 64 KiB, MB/s" "${best[tcp_bw]}"
}

: >"$work/ibfs.conf"
start_ibfs
for _ in $(seq "$rounds"); do
	references
	measure
done
measure_usual
heading "" peer
report
stop_daemon
finish
