/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads beside the event loop's. */
#include <signal.h>

#include <ibfs/thread.h>

int thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}
