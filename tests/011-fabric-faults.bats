# SPDX-License-Identifier: BSD-2-Clause
# Imperfect cables, without files: see fabric-faults.c.
load helpers

@test "the same seed gives the same faults" { ctest fabric-faults replay; }
@test "drop, at its rate" { ctest fabric-faults drop rate; }
@test "corrupt packets are dropped and counted" { ctest fabric-faults corrupt; }
@test "too many corrupt packets are reported" { ctest fabric-faults integrity; }
@test "duplicate" { ctest fabric-faults duplicate; }
@test "reorder, and the last packet comes too" { ctest fabric-faults reorder delayed-reorder; }
@test "delay keeps the order" { ctest fabric-faults delay; }
@test "what a cable holds is lost with it" { ctest fabric-faults flush down-inside limit; }
@test "segments suffer one by one" { ctest fabric-faults gso; }
@test "settings that make no sense are refused" { ctest fabric-faults refused; }
