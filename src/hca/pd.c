/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains and XRC domains: what others refer to. IBA 10.2.3, A14.2.
 */
#include <errno.h>
#include <stdlib.h>

#include "hca/verbs.h"

int pd_alloc(struct ibfs_device *dev, struct ibfs_pd **pd)
{
	struct ibfs_pd *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return -ENOMEM;
	new->verbs = verbs_of(dev);
	err = table_add(&new->verbs->pds, new, &new->handle);
	if (err) {
		free(new);
		return err;
	}
	*pd = new;
	return 0;
}

int pd_dealloc(struct ibfs_pd *pd)
{
	if (pd->refs)
		return -EBUSY;
	table_del(&pd->verbs->pds, pd->handle);
	free(pd);
	return 0;
}

int xrcd_alloc(struct ibfs_device *dev, struct ibfs_xrcd **xrcd)
{
	struct ibfs_xrcd *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return -ENOMEM;
	new->verbs = verbs_of(dev);
	err = table_add(&new->verbs->xrcds, new, &new->handle);
	if (err) {
		free(new);
		return err;
	}
	*xrcd = new;
	return 0;
}

int xrcd_dealloc(struct ibfs_xrcd *xrcd)
{
	if (xrcd->refs)
		return -EBUSY;
	table_del(&xrcd->verbs->xrcds, xrcd->handle);
	free(xrcd);
	return 0;
}
