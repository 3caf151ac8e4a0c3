/* Host side of an emulated device; see host.h. */

#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TRANSFER_TIMEOUT 200 /* [ms] */

int link_list(struct listed *found, int most)
{
    Dl_info own;
    char path[512];
    if (!dladdr((void *)link_list, &own) || strlen(own.dli_fname) >= sizeof path - sizeof "devices")
        return 0;
    strcpy(path, own.dli_fname);
    char *last = strrchr(path, '/');
    strcpy(last ? last + 1 : path, "devices");
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    int count = 0;
    while (count < most) {
        struct listed *one = &found[count];
        if (fscanf(file, " %63[^\t]\t%d\t%107[^\t]\t%*[^\n]", one->name, &one->kind, one->path) != 3)
            break;
        count++;
    }
    fclose(file);
    return count;
}

static enum link_error receive(struct link *link)
{
    struct state state;
    struct pollfd file = {.fd = link->socket, .events = POLLIN};
    int ready;
    while ((ready = poll(&file, 1, TRANSFER_TIMEOUT)) < 0 && errno == EINTR)
        ;
    if (ready == 0)
        return LINK_TIMEOUT;
    if (ready < 0 || recv(link->socket, &state, sizeof state, 0) != (ssize_t)sizeof state)
        return LINK_GONE;
    link->state = state;
    return state.busy ? LINK_BUSY : LINK_OK;
}

enum link_error link_open(struct link *link, const struct listed *device)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, device->path);
    link->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (link->socket < 0 || connect(link->socket, (struct sockaddr *)&address, sizeof address) != 0) {
        link_close(link);
        return LINK_GONE;
    }
    enum link_error error = receive(link);
    if (error != LINK_OK)
        link_close(link);
    return error;
}

enum link_error link_transfer(struct link *link, const struct command *command)
{
    if (link->socket < 0)
        return LINK_NONE;
    struct state state;
    while (recv(link->socket, &state, sizeof state, MSG_DONTWAIT) > 0)
        ; /* the late reply to a transfer that was given up */
    if (send(link->socket, command, sizeof *command, MSG_NOSIGNAL) != (ssize_t)sizeof *command)
        return LINK_GONE;
    return receive(link);
}

enum link_error link_read(struct link *link)
{
    const struct command command = {.kind = COMMAND_READ};
    return link_transfer(link, &command);
}

enum link_error link_force(struct link *link, const double force[3])
{
    struct command command = {.kind = COMMAND_FORCE};
    memcpy(command.force, force, sizeof command.force);
    return link_transfer(link, &command);
}

enum link_error link_set(struct link *link, enum parameter parameter, double value)
{
    const struct command command = {.kind = COMMAND_SET, .parameter = parameter, .value = value};
    return link_transfer(link, &command);
}

void link_close(struct link *link)
{
    if (link->socket >= 0)
        close(link->socket);
    link->socket = -1;
}
