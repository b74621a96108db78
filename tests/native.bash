# SPDX-License-Identifier: BSD-2-Clause
# What tests of verbs from a shell share: on each of the devices rxe0, rxe1, ...
# a PD pN, a CQ cN and an MR mN, and short ways to use them. Loaded by
# `load native` after helpers; setup() calls native_setup, teardown()
# native_teardown. The working directory is the tree.

native_setup()	# DEVICES [ARGUMENTS of the MRs]
{
	local n
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
	cd "$MNT" || return 1
	for ((n = 0; n < $1; n++)); do
		mkdir "pd/p$n" "cq/c$n" "mr/m$n"
		echo "create device=rxe$n" >"pd/p$n/ctl"
		echo "create device=rxe$n cqe=64" >"cq/c$n/ctl"
		echo "create pd=p$n size=64K access=${2:-local_write}" >"mr/m$n/ctl"
	done
}

# All that is there goes: what depends on others first.
native_teardown()
{
	local kind name
	[ -z "${IBFS_SKIP:-}" ] || return 0
	cd "$MNT" || return 0
	for kind in mcast qp ah srq mw mr cq xrcd pd; do
		for name in "$kind"/*; do
			[ "$name" = "$kind/clone" ] || rmdir "$name" || return 1
		done
	done
	cd / || return 1
}

# qp NAME N WORDS...: a QP on rxeN
qp()
{
	local name=$1 n=$2
	shift 2
	mkdir "qp/$name"
	echo "create pd=p$n cq=c$n $*" >"qp/$name/ctl"
}

lid() { echo $(($(cat "sys/class/infiniband/$1/ports/${2:-1}/lid"))); }
refuses() { ! (echo "$1" >"$2") 2>/dev/null || fail "taken: $1"; }
# shellcheck disable=SC2053 # a pattern
wc_is() { local line; line=$(timeout 10 head -1 "cq/$1/wc"); [[ $line == $2 ]] || fail "$line, not $2"; }
event_is() { local line; line=$(timeout 10 head -1 "$1/events"); [ "$line" = "event=$2" ] || fail "$line, not $2"; }
# put NAME TEXT: at the start of an MR's memory. got NAME OFFSET TEXT: it is there.
put() { printf %s "$2" | dd of="mr/$1/data" conv=notrunc status=none; }
got() { [ "$(dd if="mr/$1/data" bs=1 skip="$2" count="${#3}" status=none | tr -d '\0')" = "$3" ]; }
# hex NAME OFFSET DIGITS: bytes into an MR. unhex NAME OFFSET COUNT: out of it.
hex()
{
	printf %b "$(tr -d ' ' <<<"$3" | sed 's/../\\x&/g')" |
		dd of="mr/$1/data" bs=1 seek="$2" conv=notrunc status=none
}
unhex() { od -An -v -tx1 -j"$2" -N"$3" "mr/$1/data" | tr -d ' \n'; }
