# SPDX-License-Identifier: BSD-2-Clause
# Random commands, ioctls, rings and memory: the daemon stays alive, and right afterwards.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

fuzz()
{
	local seed
	for seed in "$@"; do
		echo "# seed $seed"
		timeout 120 "$BUILD/tests/uverbs_fuzz" "$seed" 10000 "$MNT"
	done
}

@test "fuzz: random commands, ioctls, rings and memory" {
	need_root; need_kernel 6 9
	fuzz 1 2 3 4 29
	run -0 "$BUILD/tests/uverbs_raw" "$MNT"
	run -0 "$BUILD/tests/uverbs_ioctl" "$MNT"
}

@test "fuzz: two clients at once" {
	need_root; need_kernel 6 9
	spawn other "$BUILD/tests/uverbs_fuzz" 77 20000 "$MNT"
	fuzz 11 12
	wait_for -t 60 is_gone "$(spawned other)"
	file_has "$IBFS_DIR/other.log" 'refused' || fail "$(cat "$IBFS_DIR/other.log")"
	run -0 "$BUILD/tests/uverbs_raw" "$MNT"
}
