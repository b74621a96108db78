# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016
# ibfs-run: what a command sees, for root and for others, and what goes wrong.
load helpers

setup_file()
{
	start_ibfs
	# Others than its maker get at the tree.
	chmod 711 "$IBFS_DIR"
}
teardown_file() { stop_ibfs; }

setup()
{
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
	need_unshare
	# A sanitized program wants its runtime before libibfs-run.so.
	export IBFS=$MNT ASAN_OPTIONS=verify_asan_link_order=0
}

nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
need_userns()
{
	need_root
	nobody unshare -Urm true 2>/dev/null || skip "users may make no user namespace here"
}
r() { "$BUILD/ibfs-run" "$@"; }

@test "ibfs-run: the tree is at /dev/infiniband and /sys/class" {
	run -0 r ls /dev/infiniband /sys/class/infiniband /sys/class/infiniband_mad
	assert_line '^umad0$'
	assert_line '^rxe1$'
	assert_line '^abi_version$'
	run -0 r cat /sys/class/infiniband/rxe0/ports/1/state
	[ "$output" = "4: ACTIVE" ]
}

@test "ibfs-run: the rest of /sys/class and /dev stays" {
	run -0 r cat /sys/class/net/lo/mtu
	[ "$output" = "$(cat /sys/class/net/lo/mtu)" ]
	diff <(ls /sys/class) <(r ls /sys/class) | grep '^<' && false
	run -0 r sh -c 'echo gone >/dev/null && head -c 4 /dev/zero | wc -c && [ -d /dev/shm ]'
	diff <(ls /dev) <(r ls /dev) | grep '^<' && false
	true
}

@test "ibfs-run: nothing changes outside" {
	run -0 r true
	[ ! -e /dev/infiniband ] || [ ! -e /dev/infiniband/umad0 ]
	[ ! -e /sys/class/infiniband/rxe0 ]
	[ "$(grep -c ibfs-run /proc/self/mounts)" = 0 ]
}

@test "ibfs-run: programs that preload libraries of their own see the devices" {
	run -0 r "$BUILD/tests/exec" /dev/infiniband/uverbs0
	need_tool ibv_devices
	run -0 r sh -c 'LD_PRELOAD=libm.so.6 ibv_devices'
	assert_line rxe0
	run -0 r env LD_PRELOAD=libm.so.6 timeout 20 sh -c 'exec ibv_devinfo -d rxe0'
	assert_line PORT_ACTIVE
}

@test "ibfs-run: becomes the command: pid, status, arguments, environment" {
	run -0 bash -c "echo \$\$; exec '$BUILD/ibfs-run' bash -c 'echo \$\$'"
	[ "${lines[0]}" = "${lines[1]}" ]
	run -37 r sh -c 'exit 37'
	run -143 r sh -c 'kill -TERM $$'
	run -0 r printf '<%s>' -m 'a b' --help
	[ "$output" = '<-m><a b><--help>' ]
	run -0 env LD_PRELOAD=libc.so.6 "$BUILD/ibfs-run" sh -c 'echo $LD_PRELOAD'
	[[ $output = libc.so.6:*/libibfs-run.so ]]
}

@test "ibfs-run: nested" {
	run -0 r "$BUILD/ibfs-run" "$BUILD/ibfs-run" sh -c 'ls /dev/infiniband; echo $LD_PRELOAD'
	assert_line '^umad0$'
	assert_line '^[^:]*libibfs-run.so$'
}

@test "ibfs-run: finds the tree without being told" {
	[ "$(findmnt -nt fuse.ibfs | wc -l)" = 1 ] || skip "other trees are mounted here"
	unset IBFS
	run -0 r ls /dev/infiniband
	assert_line '^umad0$'
}

@test "ibfs-run: a device that comes or goes is seen" {
	spawn watcher "$BUILD/ibfs-run" sh -c 'while [ -e /sys/class/infiniband/rxe1 ]; do sleep 0.05; done; echo gone'
	echo remove >"$MNT/rxe1/ctl"
	wait_for file_is "$IBFS_DIR/watcher.log" gone
	run -0 r ls /sys/class/infiniband /dev/infiniband
	refute_line 'rxe1|umad1'
}

@test "ibfs-run: a user of a tree that root mounted" {
	need_userns
	chmod 666 "$MNT/rxe0/1/umad"
	run -0 nobody "$BUILD/ibfs-run" sh -c 'id -u; ls /dev/infiniband; cat /sys/class/net/lo/mtu; echo x >/dev/null'
	assert_line '^65534$'
	assert_line '^umad0$'
	run -0 nobody "$BUILD/ibfs-run" "$BUILD/tests/umad" new_layout /dev/infiniband/umad0
	chmod 600 "$MNT/rxe0/1/umad"
	run ! nobody "$BUILD/ibfs-run" "$BUILD/tests/umad" new_layout /dev/infiniband/umad0
	run -0 nobody "$BUILD/ibfs-run" "$BUILD/ibfs-run" ls /dev/infiniband
	assert_line '^umad0$'
}

@test "ibfs-run: a user's files stay the user's" {
	need_userns
	export TMPDIR=/tmp
	run -0 nobody "$BUILD/ibfs-run" sh -c 'f=$(mktemp); stat -c %u "$f"; rm "$f"'
	[ "$output" = 65534 ]
}

@test "ibfs-run: a user's own tree, which nobody else sees" {
	need_userns
	[ -u "$(command -v fusermount3)" ] || skip "needs fusermount3"
	nobody test -w /dev/fuse || skip "users may not mount here"
	local dir
	dir=$(mktemp -d)
	chmod 777 "$dir"
	nobody mkdir "$dir/ib"
	spawn daemon setpriv --reuid 65534 --regid 65534 --clear-groups "$BUILD/ibfs" -f "$dir/ib"
	wait_for findmnt -n "$dir/ib"
	run -0 nobody "$BUILD/ibfs-run" -m "$dir/ib" sh -c \
		"'$BUILD/tests/umad_rmpp' sizes /dev/infiniband/umad0 /dev/infiniband/umad1 2"
	run -1 r -m "$dir/ib" true
	assert_line 'Permission denied'
	nobody fusermount3 -u "$dir/ib"
	wait_for is_gone "$(spawned daemon)"
	rmdir "$dir/ib" "$dir"
}

@test "ibfs-run: a user without user namespaces is told so" {
	need_root
	unshare -Ur true 2>/dev/null || skip "users may make no user namespace here"
	run -1 unshare -Ur sh -c \
		"echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all '$BUILD/ibfs-run' true"
	assert_line '^ibfs-run: no user namespace: '
	[ ${#lines[@]} = 1 ]
}

@test "ibfs-run: usage errors end with 2" {
	run -2 r
	assert_line 'no command'
	assert_line '^usage:'
	run -2 r -m
	run -2 r --nonsense true
	run -0 r --help
	assert_line '^usage: ibfs-run'
	run -0 r --version
	assert_line '^ibfs-run [0-9]'
}

@test "ibfs-run: failures end with 1, 126 and 127, in one line" {
	run -1 r -m /nonexistent true
	[ "$output" = "ibfs-run: /nonexistent: No such file or directory" ]
	run -1 r -m /tmp true
	assert_line '^ibfs-run: /tmp: not an ibfs tree'
	[ ${#lines[@]} = 1 ]
	run -127 r nonexistent-command
	[ "$output" = "ibfs-run: nonexistent-command: No such file or directory" ]
	run -126 r /etc/passwd
	[ "$output" = "ibfs-run: /etc/passwd: Permission denied" ]
	need_userns
	mkdir -m 700 "$IBFS_DIR/closed"
	run -1 nobody "$BUILD/ibfs-run" -m "$IBFS_DIR/closed/ib" true
	assert_line '^ibfs-run: .*Permission denied'
}

@test "ibfs-run: stat says that uverbs files are the character devices of sys/class" {
	need_tool perl
	ln -s /dev/infiniband/umad0 "$BATS_TEST_TMPDIR/uverbs0"	# a name of sys/class
	ln -s /dev/infiniband/umad0 "$BATS_TEST_TMPDIR/uverbs8"	# of none
	run -0 r stat -L -c '%F %t:%T' "$BATS_TEST_TMPDIR"/uverbs? /dev/infiniband/{umad0,uverbs0}
	[ "${lines[0]}" = 'character special file e7:c0' ]
	[[ ${lines[1]} = regular*\ 0:0 ]]
	[[ ${lines[2]} = regular*\ 0:0 ]]
	[ "${lines[3]}" = 'character special file e7:c0' ]
	run -0 r perl -e 'printf "%o\n", (stat "/dev/infiniband/uverbs0")[2] & 0170000'
	[ "$output" = 20000 ]
	run -0 stat -c %F "$MNT/dev/infiniband/uverbs0"
	assert_line '^regular( empty)? file$'
}
