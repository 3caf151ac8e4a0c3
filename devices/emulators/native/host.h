/* Host side of an emulated device, shared by the libraries with the makers' symbols.

   A library finds its devices in the file "devices" in its own folder: one line each with the name, a number that the
   maker gives to the type, the path of the socket, and the file with the state of the device (for tests). */

#ifndef HOST_H
#define HOST_H

#include "far_end.h"

enum link_error { LINK_OK, LINK_GONE, LINK_TIMEOUT, LINK_BUSY, LINK_NONE };

struct listed {
    char name[64];
    int kind;
    char path[108];
};

struct link {
    int socket;         /* -1 if it is not open */
    struct state state; /* of the last transfer */
};

/* Fill `found` with the devices of this library; return their number. */
int link_list(struct listed *found, int most);

/* Connect to a listed device. */
enum link_error link_open(struct link *link, const struct listed *device);

/* Execute a command, and keep the reply in link->state. Blocks until the reply, at most for TRANSFER_TIMEOUT. */
enum link_error link_transfer(struct link *link, const struct command *command);

enum link_error link_read(struct link *link);
enum link_error link_force(struct link *link, const double force[3]);
enum link_error link_set(struct link *link, enum parameter parameter, double value);

void link_close(struct link *link);

#endif
