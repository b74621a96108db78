# SPDX-License-Identifier: BSD-2-Clause
# Random agents, MADs and reads: the daemon stays alive, and right afterwards.
load helpers

setup_file()
{
	fat_tree "$BATS_FILE_TMPDIR" static
	start_ibfs "$BATS_FILE_TMPDIR/fat.conf"
}
teardown_file() { stop_ibfs; }

fuzz()
{
	local seed
	for seed in "$@"; do
		echo "# seed $seed"
		timeout 120 "$BUILD/tests/umad_fuzz" "$seed" 20000 \
			"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$MNT/sw0/0/umad"
	done
}

@test "fuzz: random agents, MADs and reads" {
	fuzz 1 2 3 4 5
	run -0 "$BUILD/tests/umad" new_layout "$MNT/rxe0/1/umad"
	run -0 "$BUILD/tests/umad" ids "$MNT/rxe1/1/umad"
}

@test "fuzz: two clients at once" {
	spawn other "$BUILD/tests/umad_fuzz" 77 40000 "$MNT/rxe1/1/umad" "$MNT/rxe0/1/umad"
	fuzz 11 12
	wait_for -t 60 is_gone "$(spawned other)"
	run -0 "$BUILD/tests/umad" new_layout "$MNT/rxe0/1/umad"
}
