/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of others' files, which they may shorten at any time: who touches a
 * page that isn't there any more gets SIGBUS, mmap(2). The handler puts a page
 * of zeroes in its place, and the access goes on.
 *
 * A signal handler is given nothing but an address, so the list is the
 * process's. The one thread that changes it is the one that touches the memory:
 * the handler never finds it half changed.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <utlist.h>

#include "hca/verbs.h"

struct guard {
	struct guard *prev, *next;
	uint8_t *base;
	size_t size, page;
};

static struct guard *guards;

static bool replace_page(const uint8_t *addr)
{
	struct guard *guard;
	uint8_t *at;

	DL_FOREACH(guards, guard)
		if (addr >= guard->base && (size_t)(addr - guard->base) < guard->size)
			break;
	if (!guard)
		return false;
	at = guard->base + (size_t)(addr - guard->base) / guard->page * guard->page;
	return mmap(at, guard->page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* A SIGBUS of anything else ends the process at the second try. */
static void on_bus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (!replace_page(info->si_addr))
		signal(sig, SIG_DFL);
	errno = saved;
}

static int install(void)
{
	struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL);
}

struct guard *guard_new(void *base, size_t size, size_t page)
{
	struct guard *guard = calloc(1, sizeof(*guard));

	if (!guard)
		return NULL;
	if (!guards && install()) {
		free(guard);
		return NULL;
	}
	guard->base = base;
	guard->size = size;
	guard->page = page;
	DL_APPEND(guards, guard);
	return guard;
}

void guard_free(struct guard *guard)
{
	if (!guard)
		return;
	DL_DELETE(guards, guard);
	free(guard);
}
