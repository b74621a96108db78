# SPDX-License-Identifier: BSD-2-Clause
# What the bench scripts share: a scratch directory (in $scratch, if a script sets
# that first), programs and a daemon that end with the script, the best of several
# values, and ratios with what they must be. A script ends with `finish`.
cd "$(dirname "$0")/.." || exit 1
build=$PWD/build
work=$(mktemp -d "${scratch:-/tmp}/ibfs-bench.XXXXXX")
mnt=$work/mnt
mkdir "$mnt"
daemon=
pids=()
missed=0
place=()
declare -A best

cleanup()
{
	local pid
	[ -z "$daemon" ] || stop_daemon
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	rm -rf "$work"
}
trap cleanup EXIT

fail()
{
	echo "bench: $1" >&2
	exit 1
}

until_true()
{
	local end=$((SECONDS + 20))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || fail "not within 20 s: $*"
		sleep 0.05
	done
}

# begin NAME COMMAND...: a program beside this script, which writes $work/NAME.log.
begin()
{
	"${@:2}" >"$work/$1.log" 2>&1 &
	pids+=($!)
}

# On processor 0 only ("pinned"), or anywhere ("free").
set_placement()
{
	placement=$1
	place=()
	[ "$1" != pinned ] || place=(taskset -c 0)
}

# start_ibfs: with the configuration $work/ibfs.conf, placed.
start_ibfs()
{
	"${place[@]}" "$build/ibfs" -f -c "$work/ibfs.conf" "$mnt" 2>"$work/ibfs.log" &
	daemon=$!
	until mountpoint -q "$mnt"; do
		kill -0 "$daemon" 2>/dev/null || fail "ibfs ended: $(tail -n 1 "$work/ibfs.log")"
	done
}

stop_daemon()
{
	kill "$daemon" 2>/dev/null
	wait "$daemon" 2>/dev/null
	daemon=
}

# best NAME least|most VALUE: ${best[NAME]} becomes VALUE if that is better.
best()
{
	[ -n "$3" ] || fail "$1: no result: $(tail -q -n 2 "$work"/*.log 2>/dev/null)"
	best[$1]=$(awk -v old="${best[$1]:-$3}" -v new="$3" -v kind="$2" 'BEGIN {
		print (kind == "least" ? new < old : new > old) ? new : old }')
}

# heading WHAT PEER: what stands over the ratios.
heading()
{
	printf '%-46s %12s %12s %7s\n' "$1" ibfs "$2" ratio
}

# name, ibfs' value, the peer's, "min" or "max", bound of the ratio
ratio()
{
	awk -v name="$1" -v a="$2" -v b="$3" -v kind="$4" -v bound="$5" 'BEGIN {
		r = a / b
		ok = kind == "min" ? r >= bound : r <= bound
		printf "%-46s %12s %12s %7.2f  %s %-5s %s\n", name, a, b, r, kind, bound,
			ok ? "ok" : "MISSED"
		exit !ok
	}' || missed=$((missed + 1))
}

# measured NAME VALUE PEER: a ratio that nothing is demanded of.
measured()
{
	awk -v name="$1" -v a="$2" -v b="$3" 'BEGIN {
		printf "%-46s %12s %12s %7.2f\n", name, a, b, a / b
	}'
}

finish()
{
	[ "$missed" = 0 ] || fail "$missed ratios missed"
}
