#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The 9P server against diod, by the same client over unix sockets: small files
# read a second, and the throughput of a 1 GiB file: mr/N/data here, a file of
# a tmpfs there. Prints ratios (ibfs / diod) and what they must be; exits 1 when
# one is missed.
#
# usage: bench/9p.sh [SECONDS]	of each of the small files' runs (1 unless given)
set -u
scratch=/dev/shm
# shellcheck source=bench/bench.bash
. "$(dirname "$0")/bench.bash"
seconds=${1:-1}
rounds=5

command -v diod >/dev/null || PATH=$PATH:/usr/sbin
command -v diod >/dev/null || fail "diod is not installed"

ours() { "$build/bench/p9_read" "$work/ibfs" "" "$@"; }
theirs() { "$build/bench/p9_read" "$work/diod" "$work/export" "$@"; }
tell() { "$build/tests/p9" -s "$work/ibfs" "$@"; }

start()
{
	begin ibfs "$build/ibfs" -f --9p "unix:$work/ibfs"
	until_true tell cat version
	mkdir "$work/export"
	tell cat rxe0/1/state >"$work/export/state"
	begin diod diod -f -n -N -L stderr -e "$work/export" -l "$work/diod"
	until_true theirs 65536 small state 0
}

median() { printf '%s\n' "$@" | sort -n | sed -n $((($# + 1) / 2))p; }

# compare WHAT OURS... -- THEIRS...: in turn, and the ratio of the medians
compare()
{
	local what=$1 a=() b=() mine=()
	shift
	while [ "$1" != -- ]; do mine+=("$1"); shift; done
	shift
	for _ in $(seq $rounds); do
		a+=("$(ours "${mine[@]}")") || fail "ibfs: $what"
		b+=("$(theirs "$@")") || fail "diod: $what"
	done
	ratio "$what" "$(median "${a[@]}")" "$(median "${b[@]}")" min 1
}

start
heading "9P over a unix socket" diod
compare "small files, reads/s" 65536 small rxe0/1/state "$seconds" -- \
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
		compare "1 GiB, MB/s, msize $msize, $window at a time" \
			$msize large mr/m/data $window -- $msize large data $window
	done
done
finish
