# SPDX-License-Identifier: BSD-2-Clause
# What the bench scripts share: a scratch directory, a daemon that ends with the
# script, and ratios with what they must be. A script ends with `finish`.
cd "$(dirname "$0")/.." || exit 1
build=$PWD/build
work=$(mktemp -d)
mnt=$work/mnt
mkdir "$mnt"
daemon=
missed=0
place=()

cleanup()
{
	[ -z "$daemon" ] || stop_daemon
	rm -rf "$work"
}
trap cleanup EXIT

fail()
{
	echo "bench: $1" >&2
	exit 1
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

# name, ibfs' value, the peer's, "min" or "max", bound of the ratio
ratio()
{
	awk -v name="$1" -v a="$2" -v b="$3" -v kind="$4" -v bound="$5" 'BEGIN {
		r = a / b
		ok = kind == "min" ? r >= bound : r <= bound
		printf "%-44s %12s %12s %7.2f  %s %-5s %s\n", name, a, b, r, kind, bound,
			ok ? "ok" : "MISSED"
		exit !ok
	}' || missed=$((missed + 1))
}

finish()
{
	[ "$missed" = 0 ] || fail "$missed ratios missed"
}
