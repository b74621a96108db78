# SPDX-License-Identifier: BSD-2-Clause
# The suites of verbs from a shell and by mapped rings, whole, on the system's devices,
# and of IP over them.
load helpers
load nested

setup_file() { nested_can || return 0; }

@test "objects, requests, rings, statuses" { suite 310-native 318-native-kill 312-native-statuses; }
@test "opcodes, raw packets, bad lines, what a client forges" {
	suite 313-opcodes 311-native-special 317-bad-lines 803-forged-completions
}
@test "limits, names, counters of the device's own, IP interfaces" {
	suite 314-native-limits 315-names 319-hw-counters "600-ipoib:everybody reaches"
}
