# SPDX-License-Identifier: BSD-2-Clause
# Thousands of lines that can't be right, made by a seeded generator
# (tests/bad_lines.py): each is refused with an errno and words, and changes
# nothing that can be read in the tree, nor any queue.
load helpers
load native

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

# One object of each kind, in several states.
setup()
{
	native_setup 2 local_write,remote_write,remote_read,remote_atomic,mw_bind
	[ -n "${IBFS_SKIP:-}" ] || objects
}
teardown() { native_teardown; }

objects()
{
	qp a 0
	qp b 1
	echo "connect peer=b rnr_retry=0" >qp/a/ctl
	qp new 0
	qp u 0 type=ud
	printf 'init qkey=1\nrtr\nrts\n' >qp/u/ctl
	qp i 0
	echo init >qp/i/ctl
	mkdir qp/none pd/none cq/none mr/none mr/f mw/w mw/none srq/s srq/none ah/h ah/none xrcd/x mcast/g mcast/none
	# On a device of the system no process has fast registration, nor its rxe driver XRC.
	echo "create pd=p0 size=64K $(! is_soft || echo max_pages=4)" >mr/f/ctl
	echo "create pd=p0 type=2" >mw/w/ctl
	echo "create pd=p0 wr=8 sge=1" >srq/s/ctl
	echo "create pd=p0 lid=$(lid rxe1)" >ah/h/ctl
	! is_soft || echo "create device=rxe0" >xrcd/x/ctl
	echo "create qp=u gid=ff12::1" >mcast/g/ctl
	echo "recv mr=m1 wr_id=1000" >qp/b/post
}

@test "bad lines: thousands, each refused, in words, and nothing changes" {
	need_tool python3
	count=$(is_soft && echo 6000 || echo 1500)
	run python3 "$TOP/tests/bad_lines.py" "$MNT" 1 "$count"
	assert_line "^$count of $count refused, [0-9]{3} files as before\$"
	[ "${#lines[@]}" = 1 ] || fail "$(head -c 3000 <<<"$output")"
	# In b's queue is what was posted before, and no more; a's had nothing.
	grep -qx "waiting 0" cq/c0/status
	grep -qx "waiting 0" cq/c1/status
	echo "send text=one" >qp/a/post
	wc_is c1 "wr_id=1000 status=success opcode=recv byte_len=3 *"
	wc_is c0 "wr_id=1 status=success *"
	echo "send text=two" >qp/a/post
	wc_is c0 "wr_id=2 status=rnr_retry_exc_err *"
}
