#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Management speed and size: ibfs against ibsim, with the same tools on the same
# topology in one run, both pinned to one processor and free. Prints ratios
# (ibfs / ibsim) and what they must be; exits 1 when one is missed.
#
# usage: bench/mgmt.sh [-p pinned|free] [-t rtt|sweep|size] [NODES...]
# of 1116 5166 13284: all unless given, and all placements and parts.
set -u
placements="pinned free" parts="rtt sweep size"
while getopts p:t: option; do
	case $option in
	p) placements=$OPTARG ;;
	t) parts=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
# shellcheck source=bench/bench.bash
. "$(dirname "$0")/bench.bash"
preload=$(find /usr/lib -name libumad2sim.so 2>/dev/null | head -n 1)
[ -n "$preload" ] || fail "libumad2sim.so is missing: install ibsim-utils"

# pods of a three-level fat tree of 36-port switches, by node count
pods()
{
	case $1 in
	1116) echo 3 ;;
	5166) echo 14 ;;
	13284) echo 36 ;;
	*) fail "nodes are 1116, 5166 or 13284, not '$1'" ;;
	esac
}

start_ibsim()
{
	local cas switches
	cas=$(grep -c '^Ca' "$1")
	switches=$(grep -c '^Switch' "$1")
	"${place[@]}" ibsim -s -n -N $((cas + switches + 1)) -S $((switches + 1)) \
		-P $((cas + 37 * switches + 1)) "$1" >"$work/ibsim.log" 2>&1 &
	daemon=$!
	until on_ibsim smpquery -D nodeinfo 0 >/dev/null 2>&1; do
		kill -0 "$daemon" 2>/dev/null || fail "ibsim ended: $(tail -n 1 "$work/ibsim.log")"
	done
}

start_topology()
{
	cat >"$work/ibfs.conf" <<-EOF
	subnet = "sm";
	topology = "$1";
	devices = ( { name = "rxe0"; node = "H-0002c90300000000"; } );
	EOF
	start_ibfs
}

on_ibsim()
{
	"${place[@]}" env LD_PRELOAD="$preload" "$@"
}

on_ibfs()
{
	"${place[@]}" "$build/ibfs-run" -m "$mnt" "$@"
}

# The daemon's processor time so far, in ns (all its threads).
daemon_cpu()
{
	cat /proc/"$daemon"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

daemon_rss()
{
	awk '/^VmRSS/ { print $2 }' /proc/"$daemon"/status
}

# Sets took, since a daemon that is started in $(...) could not be stopped.
seconds()
{
	local start
	start=$(date +%s%N)
	"$@" >"$work/out" 2>&1 || fail "$*: $(tail -n 2 "$work/out")"
	took=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "%.3f\n", ns / 1e9 }')
}

# One cold sweep: seconds from OpenSM's first log line to SUBNET UP.
sweep()
{
	rm -rf "$work/osm"
	mkdir "$work/osm"
	OSM_CACHE_DIR=$work/osm OSM_TMP_DIR=$work/osm "$1" opensm -o -f "$work/osm/log" \
		>"$work/out" 2>&1
	grep -q 'SUBNET UP' "$work/osm/log" || fail "opensm on $1: $(tail -n 2 "$work/osm/log")"
	! grep -q 'ERR' "$work/osm/log" || echo "note: $1: $(grep -m 1 ERR "$work/osm/log")"
	awk '{ split($3, t, ":"); now = t[1] * 3600 + t[2] * 60 + t[3] + $4 / 1e6 }
		!start { start = now }
		/SUBNET UP/ { printf "%.3f\n", now - start; exit }' "$work/osm/log"
}

# Of a few tries, the best that umad_rtt (window $2) reaches on system $1.
best_rate()
{
	local rate
	for _ in 1 2 3; do
		rate=$("$1" "$build/bench/umad_rtt" "$2" 20000 2>>"$work/rtt.log")
		best "$1" most "${rate% *}"
	done
}

# Others use the machine too: both systems by turns, and the best of each.
round_trips()
{
	local window bound
	local -A best
	for window in 1 16; do
		bound=$([ "$window" = 1 ] && echo 1 || echo 0.7)
		best=()
		for _ in 1 2 3; do
			start_ibsim "$1"
			best_rate on_ibsim "$window"
			stop_daemon
			start_topology "$1"
			best_rate on_ibfs "$window"
			stop_daemon
		done
		ratio "Get(NodeInfo)/s, window $window, $placement" \
			"${best[on_ibfs]}" "${best[on_ibsim]}" min "$bound"
	done
}

# Requests: all that rxe0 sends while OpenSM runs on it.
requests()
{
	awk '/^ibfs_port_packets_transmitted_total\{device="rxe0"/ { sum += $NF } END { print sum + 0 }' "$mnt/metrics"
}

# The tools after a sweep. No SA runs any more: ibqueryerrors must not ask it for SLs.
tools()
{
	seconds "$1" ibnetdiscover
	best "${1}_ibnetdiscover" least "$took"
	seconds "$1" ibqueryerrors --skip-sl
	best "${1}_ibqueryerrors" least "$took"
}

# Both systems by turns, so often that chance matters little, and the best of each.
sweeps()
{
	local topo=$1 nodes=$2 tries=1 cpu count tool
	local -A best=()
	[ "$nodes" -gt 2000 ] || tries=3
	for _ in $(seq $tries); do
		start_ibsim "$topo"
		best sim least "$(sweep on_ibsim)"
		tools on_ibsim
		stop_daemon
		start_topology "$topo"
		cpu=$(daemon_cpu)
		count=$(requests)
		best ibfs least "$(sweep on_ibfs)"
		cpu=$(($(daemon_cpu) - cpu))
		count=$(($(requests) - count))
		[ "$count" -gt 0 ] || fail "the daemon counted no request"
		best cpu least $((cpu / count))
		tools on_ibfs
		stop_daemon
	done
	ratio "OpenSM cold sweep, s, $nodes nodes, $placement" "${best[ibfs]}" "${best[sim]}" max 1
	[ "$placement" != pinned ] ||
		ratio "daemon's ns a request / FUSE round trip" "${best[cpu]}" "$floor" max 1.5
	for tool in ibnetdiscover ibqueryerrors; do
		ratio "$tool, s, $nodes nodes, $placement" "${best[on_ibfs_$tool]}" \
			"${best[on_ibsim_$tool]}" max 1
	done
}

load_and_size()
{
	local sim
	"$build/tests/gentopo" fat3 36 36 >"$work/13284.net"
	"$build/tests/gentopo" fat3 37 64 >"$work/40000.net"
	set_placement free
	seconds start_ibsim "$work/13284.net"
	sim=$took
	stop_daemon
	start_topology "$work/13284.net"
	ratio "13,284 nodes: KiB a node / 16" $(($(daemon_rss) / 13284)) 16 max 1
	stop_daemon
	seconds start_topology "$work/40000.net"
	ratio "load, s: 40,864 nodes / ibsim's 13,284" "$took" "$sim" max 15
	ratio "40,864 nodes: MiB / 1024" $(($(daemon_rss) / 1024)) 1024 max 1
	ratio "idle: ms of processor time in 2 s / 1" "$(idle_cpu)" 1 max 1
	stop_daemon
}

idle_cpu()
{
	local before
	before=$(daemon_cpu)
	sleep 2
	echo $((($(daemon_cpu) - before) / 1000000))
}

for _ in 1 2 3 4 5; do
	pair=$(taskset -c 0 "$build/bench/echofs" "$mnt" 20000) || fail "no FUSE here"
	pair=${pair% *}
	best floor least "$pair"
done
floor=${best[floor]}
echo "FUSE write and read of 320 bytes, pinned: $floor ns"
heading "" ibsim
wanted() { [[ " $parts " = *" $1 "* ]]; }
for p in $placements; do
	set_placement "$p"
	"$build/tests/gentopo" fat3 3 >"$work/net"
	! wanted rtt || round_trips "$work/net"
	for nodes in "${@:-1116 5166 13284}"; do
		for n in $nodes; do
			wanted sweep || continue
			"$build/tests/gentopo" fat3 "$(pods "$n")" >"$work/net"
			sweeps "$work/net" "$n"
		done
	done
done
! wanted size || load_and_size
finish
