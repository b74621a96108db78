# SPDX-License-Identifier: BSD-2-Clause
# Private memory that ibfs-run makes shared while it is registered: the program
# has what it had before, whatever it does with it.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

setup()
{
	need_root; need_unshare
	export ASAN_OPTIONS=verify_asan_link_order=0
	BY=()
}

# private TEST [ROUNDS]; BY is what runs it.
private()
{
	run ib timeout 60 "${BY[@]}" "$BUILD/tests/uverbs_private" "$@"
	[ "$status" != 77 ] || skip "needs userfaultfd that holds threads: $output"
	assert_status 0
}

@test "private memory: shared while it is registered, with what was in it" { private use; }
@test "private memory: pages that nobody touched take no memory" { private sparse; }
@test "private memory: threads that write, also by read(), lose nothing" { private writers 100; }
@test "private memory: a child has its own, as it was" { private fork; }
@test "private memory: fork, posix_spawn, system while threads register" { private fork_threads 30; }
@test "private memory: zeroes come back where madvise gave it up" { private give_up; }
@test "private memory: unmapped while it is registered" { private unmap; }
@test "private memory: realloc while it is registered, and afterwards" { private realloc; }
@test "private memory: mprotect and fork while it is registered" { private protect; }
@test "private memory: regions that overlap" { private overlap; }
@test "private memory: many regions" { private many 500; }
@test "private memory: threads that register the same pages" { private threads 200; }
@test "private memory: left alone where there are limits" { private limits; }
@test "private memory: a program that closes all descriptors" { private close_all; }

@test "private memory: a user's, who can hold no threads" {
	need_tool setpriv
	chmod 755 "$IBFS_DIR"
	BY=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	private user
	BY=()
	private user
}
