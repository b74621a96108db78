# SPDX-License-Identifier: BSD-2-Clause
# A second daemon, B, with the verbs backend on the first one's (A's) devices. It
# runs under ibfs-run, so its mount is in a namespace of its own: $NMNT is B's tree as
# seen from outside, nib runs a program on it. Loaded after helpers.

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
		spawn nested ib "$BUILD/ibfs" -f -c "$IBFS_DIR/nested.conf" "$dir"
	NPID=$(spawned nested)
	NMNT=/proc/$NPID/root$dir
	export NPID NMNT
	wait_for -t 60 nested_ready
	! is_gone "$NPID" || { show_logs; fail "the second daemon ended at its start"; }
}

nested_ready() { is_gone "$NPID" || [ -e "$NMNT/version" ]; }

# In B's namespace, with B's tree where programs look for devices.
nib() { nsenter -t "$NPID" -m -- "$BUILD/ibfs-run" -m "$IBFS_DIR/nested" "$@"; }
