/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How topology files call widths and speeds, "4xEDR": what ibnetdiscover
 * prints of a link, and what ibsim enables when it reads that.
 */
#include "fabric/topology.h"

#include <string.h>

#define SPEED_ALL	(SPEED_SDR | SPEED_DDR | SPEED_QDR)

/* In rising order. FDR10 is a QDR of another clock, which no PortInfo tells apart. */
static const struct speed_name speeds[] = {
	{ "SDR", SPEED_SDR, 0 },
	{ "DDR", SPEED_SDR | SPEED_DDR, 0 },
	{ "QDR", SPEED_ALL, 0 },
	{ "FDR10", SPEED_ALL, 0 },
	{ "FDR", SPEED_ALL, SPEED_FDR },
	{ "EDR", SPEED_ALL, SPEED_FDR | SPEED_EDR },
	{ "HDR", SPEED_ALL, SPEED_FDR | SPEED_EDR | SPEED_HDR },
	{ "NDR", SPEED_ALL, SPEED_FDR | SPEED_EDR | SPEED_HDR | SPEED_NDR },
	{ "XDR", SPEED_ALL, SPEED_FDR | SPEED_EDR | SPEED_HDR | SPEED_NDR | SPEED_XDR },
};

static const struct width_name widths[] = {
	{ 1, WIDTH_1X },
	{ 2, WIDTH_2X },
	{ 4, WIDTH_1X | WIDTH_4X },
	{ 8, WIDTH_8X },
	{ 12, WIDTH_1X | WIDTH_4X | WIDTH_12X },
};

const struct speed_name *speed_by_name(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (!strcmp(name, speeds[i].name))
			return &speeds[i];
	return NULL;
}

const struct width_name *width_by_lanes(unsigned int lanes)
{
	size_t i;

	for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (lanes == widths[i].lanes)
			return &widths[i];
	return NULL;
}

const char *speed_active_name(uint8_t speed, uint8_t ext)
{
	switch (ext) {
	case SPEED_FDR:
		return "FDR";
	case SPEED_EDR:
		return "EDR";
	case SPEED_HDR:
		return "HDR";
	case SPEED_NDR:
		return "NDR";
	case SPEED_XDR:
		return "XDR";
	}
	switch (speed) {
	case SPEED_SDR:
		return "SDR";
	case SPEED_DDR:
		return "DDR";
	case SPEED_QDR:
		return "QDR";
	}
	return "???";
}

const char *width_active_name(uint8_t width)
{
	switch (width) {
	case WIDTH_1X:
		return "1x";
	case WIDTH_2X:
		return "2x";
	case WIDTH_4X:
		return "4x";
	case WIDTH_8X:
		return "8x";
	case WIDTH_12X:
		return "12x";
	}
	return "??";
}

/* Who can do a speed can do all lower ones. */
static uint8_t mask_below(uint8_t mask)
{
	mask |= mask >> 1;
	mask |= mask >> 2;
	return mask | mask >> 4;
}

/* What is supported beyond what is enabled makes tools complain of slow links. */
void port_enable(struct port *port, uint8_t width, uint8_t speed, uint8_t ext)
{
	port->width_enabled = width;
	port->width_supported = width | WIDTH_1X | WIDTH_4X;
	port->speed_enabled = speed;
	port->speed_supported = mask_below(speed);
	port->speed_ext_enabled = ext;
	port->speed_ext_supported = mask_below(ext);
	port_capabilities(port);
}
