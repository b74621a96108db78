# SPDX-License-Identifier: BSD-2-Clause
# The verbs backend when the system's devices go, hang, return, or were never
# there: nothing of the daemon hangs.
load helpers
load nested

teardown() { stop_ibfs; }

# An RDMA device in conf, none on this machine: only the soft one is there.
@test "a system with no RDMA device: a clear message, and soft devices work" {
	[ ! -e /sys/class/infiniband ] || skip "this machine has RDMA devices"
	cat >"$BATS_TEST_TMPDIR/conf" <<-END
	hcas = ( { name = "a"; }, { name = "b"; } );
	links = ( { a = "a[1]"; b = "b[1]"; } );
	backend = "verbs";
	devices = ( { name = "soft0"; node = "a"; }, { name = "mlx5_0"; backend = "verbs"; } );
	END
	start_ibfs "$BATS_TEST_TMPDIR/conf"
	file_has "$IBFS_DIR/log" "no RDMA device on this system \(/sys/class/infiniband: No such file"
	[ "$(grep -c "no RDMA device" "$IBFS_DIR/log")" = 1 ]
	[ "$(cat "$MNT/soft0/1/state")" = "4: ACTIVE" ]
	[ ! -e "$MNT/mlx5_0" ]
	run -0 ib smpquery nodeinfo -D 0,1
}

@test "devices that can't be opened: told, once" {
	need_root
	need_tool setpriv
	need_unshare
	local dir
	printf 'files = { uverbs = "0600"; };\n' >"$BATS_TEST_TMPDIR/conf"
	start_ibfs "$BATS_TEST_TMPDIR/conf"
	dir=$IBFS_DIR/other
	mkdir "$dir"
	printf 'hcas = ( { name = "h"; } ); backend = "verbs";\n' >"$dir/conf"
	chmod 711 "$IBFS_DIR"
	chown -R 65534 "$dir"
	spawn other setpriv --reuid 65534 --regid 65534 --clear-groups "$BUILD/ibfs-run" -m "$MNT" \
		env ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 \
		"$BUILD/ibfs" -f -c "$dir/conf" --9p "unix:$dir/socket"
	wait_for test -S "$dir/socket"
	file_has "$IBFS_DIR/other.log" \
		"device rxe[01] can't be opened: /dev/infiniband/uverbs[01]: Permission denied"
	[ "$(wc -l <"$IBFS_DIR/other.log")" = 1 ]
	reap other
}

@test "a configuration with an unknown backend is refused" {
	printf 'devices = ( { name = "a"; backend = "hard"; } );\n' >"$BATS_TEST_TMPDIR/conf"
	run -1 timeout 20 "$BUILD/ibfs" -f -c "$BATS_TEST_TMPDIR/conf" "$BATS_TEST_TMPDIR"
	assert_line "conf:1: devices\[0\].backend: expected \"soft\" or \"verbs\", found \"hard\""
}

@test "a list of devices, under other names, beside soft ones" {
	nested_can || skip "$IBFS_SKIP"
	start_ibfs
	start_nested 'hcas = ( { name = "h"; } );
		devices = ( { name = "soft0"; node = "h"; },
			    { name = "up"; node = "rxe1"; backend = "verbs"; },
			    { name = "none"; node = "rxe9"; backend = "verbs"; } );'
	[ "$(cat "$NMNT/up/node_guid")" = "$(cat "$MNT/rxe1/node_guid")" ]
	[ ! -e "$NMNT/rxe0" ]
	[ ! -e "$NMNT/none" ]
	[ -e "$NMNT/soft0/1/umad" ]
	run -0 nib smpquery -C up nodeinfo -D 0
}

@test "a name that a soft device has is told, and the soft device stays" {
	nested_can || skip "$IBFS_SKIP"
	start_ibfs
	start_nested 'hcas = ( { name = "rxe0"; guid = "0x77"; } ); backend = "verbs";'
	file_has "$IBFS_DIR/nested.log" "rxe0 can't be \"rxe0\": that name is taken"
	[ "$(cat "$NMNT/rxe0/node_guid")" = 0000:0000:0000:0077 ]
	[ "$(cat "$NMNT/rxe1/node_guid")" = "$(cat "$MNT/rxe1/node_guid")" ]
	# A device that comes later was found by a later scan: it isn't told again.
	echo "ca extra 1" >"$MNT/fabric/ctl"
	echo "device extra name=rxe7" >"$MNT/fabric/ctl"
	wait_for test -e "$NMNT/rxe7"
	[ "$(grep -c "that name is taken" "$IBFS_DIR/nested.log")" = 1 ]
	# It takes its place when that is free.
	echo "undevice rxe0" >"$NMNT/fabric/ctl"
	wait_for file_is "$NMNT/rxe0/node_guid" "$(cat "$MNT/rxe0/node_guid")"
}

reads_umad() { [[ $(readlink "/proc/$1/fd/3") = */umad ]]; }

# A's tree where the system's files are, in B's namespace: what loading a driver does.
return_system()	# TREE
{
	# shellcheck disable=SC2016
	nsenter -t "$NPID" -m -- sh -c 'umount -l /dev/infiniband
		mount --bind "$1/dev/infiniband" /dev/infiniband || exit 1
		for d in infiniband infiniband_mad infiniband_verbs; do
			umount -l /sys/class/$d
			mount --bind "$1/sys/class/$d" /sys/class/$d || exit 1
		done' sh "$1"
}

@test "the system dies: EIO and events, nothing hangs; its return is noticed" {
	nested_can || skip "$IBFS_SKIP"
	start_ibfs
	start_nested 'hcas = ( { name = "h"; } ); backend = "verbs";
		devices = ( { name = "soft0"; node = "h"; } );'
	exec 5<"$NMNT/events"
	exec 6<"$NMNT/rxe0/1/umad"
	exec 7<"$NMNT/rxe0/1/state"
	mkdir "$NMNT/pd/p" "$NMNT/cq/c" "$NMNT/mr/m" "$NMNT/qp/q"
	echo "create device=rxe0" >"$NMNT/pd/p/ctl"
	echo "create device=rxe0 cqe=16" >"$NMNT/cq/c/ctl"
	echo "create pd=p size=1M" >"$NMNT/mr/m/ctl"
	echo "create pd=p cq=c" >"$NMNT/qp/q/ctl"
	spawn waits cat "$NMNT/cq/c/wc"
	spawn blocked cat "$NMNT/rxe1/1/umad"
	wait_for reads_umad "$(spawned blocked)"
	kill_system
	# Events of both devices; files that are open answer EIO; those who wait end.
	run -0 timeout 20 grep -m 1 "device=rxe0 event=device_fatal" <&5
	wait_for not test -e "$NMNT/rxe0"
	wait_for not test -e "$NMNT/rxe1"
	run timeout 10 dd bs=4096 count=1 <&6
	assert_line "Input/output error"
	run timeout 10 dd bs=4096 count=1 <&7
	[ "$status" != 124 ]
	wait_for is_gone "$(spawned blocked)"
	wait_for is_gone "$(spawned waits)"
	file_has "$NMNT/qp/q/status" "state gone"
	run timeout 10 dd if="$NMNT/mr/m/data" count=1
	assert_line "Input/output error"
	rmdir "$NMNT/qp/q" "$NMNT/mr/m" "$NMNT/cq/c" "$NMNT/pd/p"
	[ -e "$NMNT/soft0/1/state" ]
	file_has "$IBFS_DIR/nested.log" "the system's rxe0 has gone"
	exec 5<&- 6<&- 7<&-

	# The new one is mounted where the second daemon sees it.
	mkdir "$IBFS_DIR/again"
	spawn again nsenter -t "$NPID" -m -- "$BUILD/ibfs" -f "$IBFS_DIR/again"
	wait_for test -e "/proc/$NPID/root$IBFS_DIR/again/version"
	return_system "$IBFS_DIR/again"
	wait_for -t 20 test -e "$NMNT/rxe0/1/state"
	wait_for -t 20 test -e "$NMNT/rxe1/1/state"
	run -0 nib smpquery -C rxe0 nodeinfo -D 0,1
	end_nested again
}

@test "the system hangs: its devices go after a while, and soft ones always answer" {
	nested_can || skip "$IBFS_SKIP"
	start_ibfs
	start_nested 'hcas = ( { name = "h"; } ); backend = "verbs";
		devices = ( { name = "soft0"; node = "h"; } );'
	kill -STOP "$IBFS_PID"
	run timeout 30 cat "$NMNT/rxe0/1/state"
	kill -CONT "$IBFS_PID"
	assert_status 1
	assert_line "Input/output error"
	run -0 timeout 30 cat "$NMNT/soft0/1/state"
	# What was stuck goes on, and the device that was given up is found again.
	wait_for -t 20 file_is "$NMNT/rxe0/1/state" "4: ACTIVE"
}
