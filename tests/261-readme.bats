# SPDX-License-Identifier: BSD-2-Clause
# What the README shows is what happens.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

# The commands of the README's block that follows a line.
commands() { awk -v from="$1" '$0 ~ from { on = 1; next } on && /^    /; on && /^[^ ]/ { exit }' \
	"$TOP/README.md" | cut -c5-; }

@test "RDMA from a shell prints what the README says" {
	need_root
	cd "$MNT"
	commands '^RDMA, in the mount point' >"$BATS_TEST_TMPDIR/block"
	[ "$(grep -c '^\$ ' "$BATS_TEST_TMPDIR/block")" -ge 8 ]
	sed -n 's/^\$ //p' "$BATS_TEST_TMPDIR/block" >"$BATS_TEST_TMPDIR/script"
	run -0 bash -e "$BATS_TEST_TMPDIR/script"
	[ "$output" = "$(grep -v '^\$ ' "$BATS_TEST_TMPDIR/block")" ] || fail "$output"
	# What mkdir made stays until rmdir.
	rmdir qp/*/ mr/*/ cq/*/ pd/*/
}

@test "a link goes down as the README says" {
	need_root
	run -0 sh -c "echo down > '$MNT/fabric/links/rxe0:1-switch:1/ctl'"
	run -0 cat "$MNT/rxe0/1/state"
	[ "$output" = "1: DOWN" ]
	grep -q "echo down > /ib/fabric/links/rxe0:1-switch:1/ctl" "$TOP/README.md"
}
