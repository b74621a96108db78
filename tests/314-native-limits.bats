# SPDX-License-Identifier: BSD-2-Clause
# What one user may have: resources of each kind, memory behind send and recv.
load helpers

setup_file()
{
	[ "$(id -u)" = 0 ] || { skip_file "needs root"; return 0; }
	NESTED_CONF='limits = { user_objects = 4; };'
	echo "$NESTED_CONF" >"$BATS_FILE_TMPDIR/conf"
	start_ibfs "$BATS_FILE_TMPDIR/conf"
	chmod 755 "$IBFS_DIR"
}
teardown_file() { stop_ibfs; }

# as_user COMMANDS: in the root of the tree
as_user()
{
	run setpriv --reuid=65534 --regid=65534 --clear-groups bash -c "cd '$MNT'; $1"
}

@test "a user's resources of each kind are limited, root's are not" {
	local kind
	for kind in pd mr mw cq srq qp ah xrcd mcast; do
		as_user "mkdir $kind/{a,b,c,d} && mkdir $kind/e"
		assert_status 1
		assert_line "cannot create directory '?.?.?$kind/e'?.?.?: Disk quota exceeded"
		grep -q "^EDQUOT: $kind: user 65534 has 4 of them" "$MNT/errors"
		as_user "exec 3<>$kind/clone"
		assert_line "Disk quota exceeded"
		# Those of a kind count by themselves, and those that went don't.
		as_user "rmdir $kind/a && mkdir $kind/e && ! mkdir $kind/f && rmdir $kind/?"
		assert_status 0
	done
	cd "$MNT"
	mkdir pd/{1,2,3,4,5,6}x
	chown 65534 pd/1x/ctl
	as_user "mkdir pd/{a,b,c,d} && rmdir pd/{a,b,c,d}"
	assert_status 0
	rmdir pd/?x
}

@test "clones count while they are open" {
	as_user 'exec 3<>pd/clone 4<>pd/clone 5<>pd/clone 6<>pd/clone; ! mkdir pd/x && exec 3<&- && mkdir pd/x && rmdir pd/x'
	assert_status 0
}

@test "what send and recv keep is counted as memory" {
	# shellcheck disable=SC2016 # for the other shell
	as_user 'ulimit -l 100
		mkdir pd/p cq/c qp/a qp/b
		echo create device=rxe0 >pd/p/ctl; echo create device=rxe0 cqe=64 >cq/c/ctl
		for q in a b; do echo create type=rc pd=p cq=c >qp/$q/ctl; done
		echo connect peer=b >qp/a/ctl
		timeout 10 head -c5 <qp/b/recv &
		until grep -q uid=65534 pinned; do sleep 0.02; done
		cat pinned
		head -c 40000 /dev/zero | dd of=qp/a/send bs=64K iflag=fullblock
		cat qp/a/status
		timeout 5 head -c5 <qp/a/recv
		grep refused qp/a/status
		echo hello >qp/a/send; wait
		rmdir qp/a qp/b cq/c pd/p'
	assert_line 'uid=65534 bytes=65536 limit=102400'
	assert_line 'refused send: .*RLIMIT_MEMLOCK'
	assert_line 'refused recv: .*RLIMIT_MEMLOCK'
	assert_line '^hello'
	run ! grep -q uid=65534 "$MNT/pinned"
}

@test "uverbs' resources count with the tree's" {
	soft_only "programs have the system's uverbs files"
	as_user 'mkdir pd/{a,b}; python3 - <<-"END"
	import ctypes, os, struct
	fd = os.open("rxe0/uverbs", os.O_RDWR)
	resp = ctypes.create_string_buffer(64)
	def command(number, out_words):
	    try:
	        os.write(fd, struct.pack("<IHHQ", number, 4, out_words, ctypes.addressof(resp)))
	        return 0
	    except OSError as e:
	        return e.errno
	print("context", command(0, 2))
	print("pds", [command(3, 1) for i in range(3)])
	END
	rmdir pd/?'
	assert_line 'context 0'
	assert_line 'pds \[0, 0, 12\]'
}
