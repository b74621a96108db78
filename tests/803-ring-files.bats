# SPDX-License-Identifier: BSD-2-Clause
# Rings as files, where they can't be mapped (over 9P they can't be, either): who reads one
# gets that ring and nothing else, also when it was replaced meanwhile.
load helpers
load native

setup_file()
{
	[ "$(id -u)" = 0 ] || { skip_file "needs root"; return 0; }
	echo 'passthrough = false;' >"$BATS_FILE_TMPDIR/conf"
	start_ibfs "$BATS_FILE_TMPDIR/conf"
	[ -z "${IBFS_DIR:-}" ] || chmod 755 "$IBFS_DIR"
}
teardown_file() { stop_ibfs; }

setup() { native_setup 1; }
teardown() { native_teardown; }

# On descriptors 3 and 4 rings of a user's that are replaced, while root fills memory:
# what the user reads there after a line to its input.
reader='
	mkdir pd/u cq/u srq/u
	echo create device=rxe0 >pd/u/ctl
	echo create device=rxe0 cqe=64 >cq/u/ctl
	echo create pd=u wr=4 >srq/u/ctl
	exec 3<cq/u/ring 4<srq/u/ring
	echo resize cqe=100 >cq/u/ctl
	echo resize wr=100 >srq/u/ctl
	echo ready
	read -r
	head -c 64K <&3 | tr -d "\\0"; head -c 64K <&4 | tr -d "\\0"
	rmdir srq/u cq/u pd/u'

@test "a ring that was replaced shows no other memory" {
	local out=$BATS_TEST_TMPDIR/out user n
	mkfifo "$BATS_TEST_TMPDIR/go"
	exec {go}<>"$BATS_TEST_TMPDIR/go"
	setpriv --reuid=65534 --regid=65534 --clear-groups timeout 60 bash -c "$reader" \
		<&"$go" >"$out" 2>&1 3>&- &
	user=$!
	wait_for file_has "$out" ready
	for n in 1 2 3 4; do
		mkdir "mr/s$n"
		echo create pd=p0 size=64K access=local_write >"mr/s$n/ctl"
		put "s$n" "the secret of number $n"
	done
	echo >&"$go"
	wait "$user"
	! grep -a secret "$out" || fail "a user read it"
}

# Bytes 4 to 7 are the ring's mask. rdma/rdma_user_rxe.h
@test "a ring's file is the ring as it is now" {
	local ring
	exec {ring}<cq/c0/ring
	echo resize cqe=200 >cq/c0/ctl
	[ "$(od -An -tu4 -j4 -N4 <&"$ring" | tr -d ' ')" = 255 ]
	exec {ring}<&-
	[ "$(head -c 1M cq/c0/ring | wc -c)" = $(((384 + 64 * 256 + 4095) / 4096 * 4096)) ]
}
