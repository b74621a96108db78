# SPDX-License-Identifier: BSD-2-Clause
# Memory that processes register: private, of files that they share, and what
# becomes of it while it is in use.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

# memory TEST: by a process of libibverbs, which gives 77 where this system lacks what it needs.
memory()
{
	need_root; need_unshare
	ASAN_OPTIONS=verify_asan_link_order=0 run ib timeout 60 "$BUILD/tests/uverbs_memory" "$1" "$IBFS_PID"
	[ "$status" != 77 ] || skip "no memory of this kind here: $output"
	assert_status 0
}

@test "registered memory: private, also of a file" { memory private; }
@test "registered memory: the daemon maps what is shared by memfd, or by a parent" { memory memfd; }
@test "registered memory: the daemon maps what is shared by shm_open" { memory shm; }
@test "registered memory: the daemon maps what is shared by shmget" { memory sysv; }
@test "registered memory: the daemon maps huge pages that are shared" { memory huge; }
@test "registered memory: ranges over several mappings, and with a hole" { memory mixed; }
@test "registered memory: pages stay what they were when others are mapped there" { memory remap; }
@test "registered memory: a file that is shortened while it is used" { memory truncate; }
@test "registered memory: a large file that only the daemon still has" { memory left; }
@test "registered memory: on demand, also all that a process has" { memory on_demand; }
@test "registered memory: a page that comes late" { memory dead; }
@test "registered memory: atomics on a page that is being written back" { memory atomics; }
