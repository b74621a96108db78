/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set-user-ID program that others attack (callbacks.c): callbacks_victim. It has a
 * secret where callbacks.h says, tells so on descriptor TELL, waits for GO to end, and
 * its exit status says what was done to it.
 */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "callbacks.h"

/* By a system call: a sanitizer's mmap() doesn't like the address. */
static bool make_secret(void)
{
	long at = syscall(SYS_mmap, SECRET, SECRET_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0L);

	if (at != (long)SECRET)
		return false;
	memset((void *)SECRET, SECRET_BYTE, SECRET_SIZE);
	return true;
}

static bool changed(void)
{
	const unsigned char *byte = (const unsigned char *)SECRET;

	for (int i = 0; i < SECRET_SIZE; i++)
		if (byte[i] != SECRET_BYTE)
			return true;
	return false;
}

/* A pair of sockets, whose first end has a number that the attacker knows. */
static bool make_sockets(void)
{
	int pair[2];

	return !socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) && dup2(pair[1], SOCK_PEER) == SOCK_PEER &&
	       dup2(pair[0], SOCK) == SOCK;
}

int main(void)
{
	char byte;

	if (geteuid() || !make_secret() || !make_sockets())
		return NO_ROOT;
	if (write(TELL, "r", 1) != 1)
		return 1;
	while (read(GO, &byte, 1) > 0)
		;
	if (changed())
		return CHANGED;
	return recv(SOCK_PEER, &byte, 1, MSG_DONTWAIT) < 0 ? 0 : SENT;
}
