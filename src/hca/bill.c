/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an object takes of the daemon for its queues, as its client is told before
 * it is taken (struct verbs_client). The client has all of it back when the object
 * goes, or when the client leaves it to others.
 */
#include "hca/verbs.h"

int bill_take(struct bill *bill, struct verbs_cost cost)
{
	struct verbs_client *client = bill->client;
	int err = client && client->pay ? client->pay(client, &cost) : 0;

	if (err)
		return err;
	bill->cost.bytes += cost.bytes;
	bill->cost.descriptors += cost.descriptors;
	bill->cost.mappings += cost.mappings;
	return 0;
}

void bill_give(struct bill *bill, struct verbs_cost cost)
{
	struct verbs_client *client = bill->client;

	if (client && client->refund)
		client->refund(client, &cost);
	bill->cost.bytes -= cost.bytes;
	bill->cost.descriptors -= cost.descriptors;
	bill->cost.mappings -= cost.mappings;
}

void bill_settle(struct bill *bill)
{
	struct verbs_client *client = bill->client;

	if (client && client->refund)
		client->refund(client, &bill->cost);
	bill->client = NULL;
}
