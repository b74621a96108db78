#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The 9P server against diod, by the same client over unix sockets: small files
# read a second, and the throughput of a 1 GiB file: mr/N/data here, a file of
# a tmpfs there. Prints ratios (ibfs / diod) and what they must be; exits 1 when
# one is missed.
#
# usage: bench/9p.sh [SECONDS]	of each of the small files' runs (1 unless given)
set -u
cd "$(dirname "$0")/.." || exit 1
build=$PWD/build
seconds=${1:-1}
rounds=5
work=$(mktemp -d /dev/shm/ibfs-bench.XXXXXX)
pids=()
missed=0

cleanup()
{
	local pid
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

command -v diod >/dev/null || PATH=$PATH:/usr/sbin
command -v diod >/dev/null || fail "diod is not installed"

ours() { "$build/bench/p9_read" "$work/ibfs" "" "$@"; }
theirs() { "$build/bench/p9_read" "$work/diod" "$work/export" "$@"; }
tell() { "$build/tests/p9" -s "$work/ibfs" "$@"; }

start()
{
	"$build/ibfs" -f --9p "unix:$work/ibfs" 2>"$work/ibfs.log" &
	pids+=($!)
	until_true tell cat version
	mkdir "$work/export"
	tell cat rxe0/1/state >"$work/export/state"
	diod -f -n -N -L stderr -e "$work/export" -l "$work/diod" 2>"$work/diod.log" &
	pids+=($!)
	until_true theirs 65536 small state 0
}

# compare WHAT MUST OURS... -- THEIRS...: in turn, the median of each, and their ratio
compare()
{
	local what=$1 must=$2 a=() b=() i mine=() its=()
	shift 2
	while [ "$1" != -- ]; do mine+=("$1"); shift; done
	shift
	its=("$@")
	for ((i = 0; i < rounds; i++)); do
		a+=("$(ours "${mine[@]}")") || fail "ibfs: $what"
		b+=("$(theirs "${its[@]}")") || fail "diod: $what"
	done
	printf '%s\n' "${a[@]}" | sort -n | sed -n $((rounds / 2 + 1))p >"$work/a"
	printf '%s\n' "${b[@]}" | sort -n | sed -n $((rounds / 2 + 1))p >"$work/b"
	awk -v a="$(cat "$work/a")" -v b="$(cat "$work/b")" -v what="$what" -v must="$must" 'BEGIN {
		ratio = a / b
		printf "%-44s %10d %10d  %6.2f  must be %s or more%s\n", what, a, b, ratio, must,
			ratio < must ? "  MISSED" : ""
		exit ratio < must
	}' || missed=1
}

start
printf '%-44s %10s %10s  %6s\n' "9P over a unix socket" ibfs diod ratio
compare "small files, reads/s" 1 65536 small rxe0/1/state "$seconds" -- \
	65536 small state "$seconds"

tell mkdir pd/p || fail "no protection domain"
tell mkdir mr/m || fail "no memory region"
echo 'create device=rxe0' | tell write pd/p/ctl
echo 'create pd=p size=1G access=local_write' | tell write mr/m/ctl || fail "no 1 GiB"
# Both have their pages before anything is measured.
head -c 1G /dev/urandom >"$work/export/data"
tell write mr/m/data <"$work/export/data" || fail "cannot fill mr/m/data"
for msize in 65536 1048576; do
	for window in 1 4; do
		compare "1 GiB, MB/s, msize $msize, $window at a time" 1 \
			$msize large mr/m/data $window -- $msize large data $window
	done
done
[ $missed = 0 ]
