# SPDX-License-Identifier: BSD-2-Clause
# What blocks over 9P waits as a pending tag: reads, the opening of issm; ended by
# Tflush, clunk, a new session, or hanging up.
load helpers
load 9p

setup_file() { start_9p; }
teardown_file() { stop_9p; }

is_sm() { [ $(($(p9 cat rxe0/1/cap_mask) & 2)) -ne 0 ]; }

@test "reads and opens that wait, flushes, storms, half messages" {
	local line
	while read -r line; do
		p9 mkdir "${line%% *}"
		[[ $line != *' '* ]] || p9 write "${line%% *}/ctl" <<<"${line#* }"
	done <<-END
		pd/p create device=rxe0
		cq/c create device=rxe0 cqe=16
		srq/s create pd=p
		mr/m create pd=p size=4M access=local_write
		qp/b create type=rc pd=p cq=c sq=4 rq=4
		qp/a create type=rc pd=p cq=c sq=4 rq=4
	END
	p9 write qp/a/ctl <<<"connect peer=b"
	timeout 120 "$BUILD/tests/p9_wait" "$SOCK"
	for line in qp/a qp/b mr/m srq/s cq/c pd/p; do p9 rm $line; done
}

@test "IsSM clears when the connection that holds issm is cut" {
	spawn holder "$BUILD/tests/p9" -s "$SOCK" hold rxe0/1/issm
	wait_for file_is "$IBFS_DIR/holder.log" open
	is_sm
	spawn next "$BUILD/tests/p9" -s "$SOCK" -v 9P2000 hold rxe0/1/issm
	is_sm
	reap holder KILL
	wait_for file_is "$IBFS_DIR/next.log" open
	is_sm
	reap next KILL
	wait_for not is_sm
}
