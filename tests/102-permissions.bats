# SPDX-License-Identifier: BSD-2-Clause
# Who may do what: modes and owners of the tree, for another user than root.
load helpers

setup_file()
{
	need_tool_or_skip_file
	start_ibfs
	[ -z "${IBFS_DIR:-}" ] || chmod 755 "$IBFS_DIR"
}
teardown_file() { stop_ibfs; }

need_tool_or_skip_file()
{
	[ "$(id -u)" = 0 ] || skip_file "needs root"
	command -v setpriv >/dev/null || skip_file "setpriv is not installed"
}

as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
in_group() { setpriv --reuid=65534 --regid=65534 --groups="$1" "${@:2}"; }
denied() { [ "$status" -ne 0 ] && [[ $output == *'Permission denied'* ]]; }

@test "another user sees the tree" {
	run -0 as_user cat "$MNT/rxe0/1/state"
	[ "$output" = '4: ACTIVE' ]
	run -0 as_user cat "$MNT/fabric/topology"
	run -0 as_user bash -c "echo 'pkey 0xffff' >'$MNT/rxe0/query'"
	[ "$(as_user find "$MNT" | wc -l)" = "$(find "$MNT" | wc -l)" ]
}

@test "another user gets no umad, issm or capture, and changes nothing" {
	local file
	for file in rxe0/1/umad rxe0/1/issm dev/infiniband/umad0 rxe0/1/pcap; do
		run as_user dd if="$MNT/$file" count=0
		denied
	done
	for file in "$MNT"/{rxe0/1/ctl,rxe0/node_desc,fabric/ctl,rxe0/ctl,rxe0/1/lid} \
		"$MNT/rxe0/1/counters/port_xmit_data" "$SYSTEM_MNT/fabric/switches/switch/ctl" \
		"$SYSTEM_MNT/fabric/links/rxe0:1-switch:1/ctl"; do
		run as_user bash -c "echo 0 >'$file'"
		denied || fail "$file: $output"
	done
}

@test "modes are the configuration's, and chmod and chown change them" {
	[ "$(stat -c '%a %u' "$MNT/rxe0/1/umad")" = '600 0' ]
	chmod 666 "$MNT/rxe0/1/umad"
	[ "$(stat -c %a "$MNT/dev/infiniband/umad0")" = 666 ]
	[ "$(stat -c %a "$MNT/rxe1/1/umad")" = 600 ]
	run -0 as_user dd if="$MNT/dev/infiniband/umad0" count=0
	chown 0:1234 "$MNT/rxe0/1/umad"
	chmod 660 "$MNT/rxe0/1/umad"
	run as_user dd if="$MNT/rxe0/1/umad" count=0
	denied
	run -0 in_group 1234 dd if="$MNT/rxe0/1/umad" count=0
	chown 65534 "$MNT/rxe1/1/umad"
	run -0 as_user chmod 640 "$MNT/rxe1/1/umad"
	[ "$(stat -c '%a %u' "$MNT/rxe1/1/umad")" = '640 65534' ]
	run as_user chown 0 "$MNT/rxe1/1/umad"
	[[ $output == *'Operation not permitted'* ]]
}

@test "a file that shows what is keeps its mode" {
	run chmod 666 "$MNT/rxe0/1/lid"
	[[ $output == *'Operation not permitted'* ]]
	run as_user chmod 666 "$MNT/rxe0/1/issm"
	[[ $output == *'Operation not permitted'* ]]
	[ "$(stat -c %a "$MNT/rxe0/1/issm")" = 600 ]
}

@test "modes from the configuration" {
	local dir=$BATS_TEST_TMPDIR
	printf 'files = { umad = "0640"; issm = "0660"; gid = "daemon"; };\n' >"$dir/conf"
	mkdir "$dir/m"
	"$BUILD/ibfs" -c "$dir/conf" "$dir/m"
	run stat -c '%a %G' "$dir/m/rxe0/1/umad" "$dir/m/dev/infiniband/issm1"
	umount "$dir/m"
	[ "$output" = $'640 daemon\n660 daemon' ]
}
