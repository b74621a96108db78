# SPDX-License-Identifier: BSD-2-Clause
# Properties of the transport on bad links: tests/verbs_faults.c. A failure
# prints the seed to run alone.
load helpers

faults() { "$BUILD/tests/verbs_faults" "$@"; }

@test "rc: once, in order, intact (2000 runs)" { faults rc 1 2000; }
@test "rc: links on which whole windows get lost" { faults rc 3533 && faults rc 5434 && faults rc 14287; }
@test "uc: intact (500 runs)" { faults uc 1 500; }
@test "ud: intact (500 runs)" { faults ud 1 500; }
