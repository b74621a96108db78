# SPDX-License-Identifier: BSD-2-Clause
# A second daemon, B, with the verbs backend on the first one's (A's) devices. It
# runs under ibfs-run, so its mount is in a namespace of its own: that is mounted at
# $NMNT for the tests, too; nib runs a program on it. Loaded after helpers.

# Namespaces are entered by root only.
nested_can()
{
	[ "$(id -u)" = 0 ] || { skip_file "needs root"; return 1; }
	command -v nsenter >/dev/null || { skip_file "nsenter is not installed"; return 1; }
	[ -w /dev/fuse ] || { skip_file "no /dev/fuse here"; return 1; }
	unshare -m true 2>/dev/null || { skip_file "needs permission for a mount namespace"; return 1; }
}

# start_nested CONF-TEXT
start_nested()
{
	local dir=$IBFS_DIR/nested
	mkdir -p "$dir"
	printf '%s\n' "$1" >"$IBFS_DIR/nested.conf"
	# The preloaded library comes before a sanitizer's.
	ASAN_OPTIONS=log_path=$IBFS_DIR/asan:verify_asan_link_order=0:detect_leaks=0 \
	UBSAN_OPTIONS=log_path=$IBFS_DIR/asan:print_stacktrace=1 \
	TSAN_OPTIONS=log_path=$IBFS_DIR/asan:history_size=4 \
		spawn nested ib "$BUILD/ibfs" -f -c "$IBFS_DIR/nested.conf" "$dir"
	NPID=$(spawned nested)
	NMNT=$dir
	export NPID NMNT
	wait_for -t 60 nested_ready
	! is_gone "$NPID" || { show_logs; fail "the second daemon ended at its start"; }
	"$BUILD/tests/mount_from" "$NPID" "$dir" "$dir"
}

nested_ready() { is_gone "$NPID" || [ -e "/proc/$NPID/root$NMNT/version" ]; }

# kill_system: the first daemon, and what it had mounted.
kill_system()
{
	kill -KILL "$IBFS_PID"
	wait_for is_gone "$IBFS_PID"
	umount -l "$MNT"
}

# end_nested NAME...: after that nothing is left of the first daemon for stop_ibfs to look
# at. NAMEs: what else ends with the second one.
end_nested()
{
	local name
	for name in nested "$@"; do reap "$name"; done
	umount -l "$NMNT"
	rm -rf --one-file-system "$IBFS_DIR"
	unset IBFS_PID
}

nib() { "$BUILD/ibfs-run" -m "$NMNT" "$@"; }

regex() { [[ $1 != *:* ]] || echo "${1#*:}"; }
# suite FILE[:REGEX]...: whole test files, or tests by their names, side by side, on a
# second daemon's tree. What they skip is told, with the reason.
suite()
{
	local file path out pids=() pid ok=0
	# bats puts its own parts, of which one is called bats, in front.
	path=$(tr : '\n' <<<"$PATH" | grep -v libexec/bats | paste -sd :)
	for file; do
		env -i PATH="$path" HOME="${HOME:-/}" TMPDIR="${TMPDIR:-/tmp}" IBFS_BUILD="$BUILD" \
			IBFS_NESTED=1 bats --tap -f "$(regex "$file")" "$TOP/tests/${file%%:*}.bats" \
			>"$BATS_TEST_TMPDIR/${file%%:*}" 2>&1 </dev/null 3>&- &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || ok=1; done
	for file; do
		file=${file%%:*}
		out=$BATS_TEST_TMPDIR/$file
		[ "1..$(grep -c '^ok ' "$out")" = "$(head -1 "$out")" ] || { ok=1; cat "$out" >&2; }
		sed -n "s/^ok [0-9]* \(.*\) # skip \(.*\)/# not on the system's devices: $file: \1: \2/p" \
			"$out" >&3
	done
	return $ok
}
