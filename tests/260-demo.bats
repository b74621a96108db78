# SPDX-License-Identifier: BSD-2-Clause
# The demonstration works, and leaves nothing behind.
load helpers

setup()
{
	[ -w /dev/fuse ] || skip "no /dev/fuse here"
	need_root
	need_tool opensm ibnetdiscover
}

@test "the demonstration runs and leaves no process, mount or file" {
	mkdir "$BATS_TEST_TMPDIR/demo"
	TMPDIR=$BATS_TEST_TMPDIR/demo run -0 "$TOP/contrib/demo" "${BUILD#"$TOP"/}"
	assert_line '4: ACTIVE'
	assert_line 'SMINFO_MASTER'
	run ! pgrep -f "$BATS_TEST_TMPDIR/demo"
	run ! grep "$BATS_TEST_TMPDIR/demo" /proc/self/mounts
	[ -z "$(ls -A "$BATS_TEST_TMPDIR/demo")" ]
}
