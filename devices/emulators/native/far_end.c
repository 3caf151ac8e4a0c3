/* Device side of an emulated device: the handle, its motors, the maker's watchdog, faults, and a record of the forces.

   `serve` runs without the interpreter. The motion in a plane is computed by the compiled parts of a virtual joystick,
   which has the hand; the axis normal to it is a damped mass under the small constant force of a resting hand. Time
   advances when a command arrives, and at least every few milliseconds, in whole steps. A command acts from its
   arrival on, and the watchdog at its exact time, whenever that is computed. */

#define _GNU_SOURCE
#include "far_end.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEP 1e-4    /* of the integration [s] */
#define CHUNK 20     /* most steps at once, between which the hand moves evenly */
#define IDLE 5       /* longest time between two advances [ms] */
#define MEMORY 1.0   /* time for which a stall is remembered [s] */
#define MOST_FAULTS 64
#define MOST_TIMED 32
#define LOG_LENGTH 65536

typedef void (*part)(int64_t record, double x, double y);

struct timed {
    double start, end; /* relative to the first force, or to the connection [s] */
    uint64_t bits;
};

struct entry {
    double time;         /* [s] */
    double commanded[3]; /* force of the last command [N] */
    double applied[3];   /* force of the motors [N] */
    double position[3], velocity[3]; /* true ones, [m] and [m/s] */
    int64_t cause;       /* of the switch-off */
    int64_t output;      /* digital output */
};

/* Shared with devices.emulators.far_end.DEVICE and, through a file, with tests. All fields have 8 bytes. */
struct device {
    /* parameters */
    int64_t take, give, plant;        /* parts of the virtual joystick, and its record */
    int64_t place, speed, buttons;    /* addresses of its position, velocity and buttons */
    double axes[3][3], middle[3];     /* directions of x, y and height along the device's axes, and their origin [m] */
    double mass, damping, sag, room;  /* of the axis normal to the plane: [kg], [N s/m], [N], +-[m] */
    double weight[3];                 /* of the moving parts, along the device's axes [N] */
    double brake;                     /* damping of braking motors [N s/m] */
    double count;                     /* resolution of the position [m] */
    double astray[3];                 /* error of the position before the reference positions are found [m] */
    double most_force;                /* largest force of the motors [N] */
    struct timed timed[MOST_TIMED];   /* faults by time */
    double delays[MOST_FAULTS];       /* of a reply, by fault [s] */
    int64_t causes[MOST_FAULTS];      /* of a switch-off when the fault begins; 0 for none */
    int64_t watchdog_cause, speed_cause;
    int64_t unplugging, mute, homed_at_first; /* bits of the faults that disconnect, and that lose replies */
    int64_t opening;                  /* bits of the faults whose time counts from the connection of a host */
    /* state */
    int64_t switched;                 /* faults that are switched by hand */
    double began, opened, origin;     /* start of the hand, connection, and first force [s]; 0 before */
    int64_t tick, forces_on, braking, homed, cause, past_faults, connected, transfers;
    double watchdog, speed_limit, renewed; /* [s], [m/s], time of the last force [s] */
    double height, rise;
    double alive, stalled_at, stall;  /* time of the last pass; end and length of the longest recent stall [s] */
    double commanded[3], applied[3];
    int64_t output;
    int64_t logged;
    struct entry log[LOG_LENGTH];
};

int64_t device_size(void) { return (int64_t)sizeof(struct device); }

static void in_space(const struct device *d, const double *plane, double third, double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = d->axes[0][i] * plane[0] + d->axes[1][i] * plane[1] + d->axes[2][i] * third;
}

static double along(const double axis[3], const double vector[3])
{
    return axis[0] * vector[0] + axis[1] * vector[1] + axis[2] * vector[2];
}

static void note(struct device *d, double now)
{
    struct entry *entry = &d->log[d->logged % LOG_LENGTH];
    entry->time = now;
    memcpy(entry->commanded, d->commanded, sizeof entry->commanded);
    memcpy(entry->applied, d->applied, sizeof entry->applied);
    in_space(d, (const double *)d->place, d->height, entry->position);
    for (int i = 0; i < 3; i++)
        entry->position[i] += d->middle[i];
    in_space(d, (const double *)d->speed, d->rise, entry->velocity);
    entry->cause = d->cause;
    entry->output = d->output;
    __atomic_store_n(&d->logged, d->logged + 1, __ATOMIC_RELEASE);
}

static void apply(struct device *d, double now)
{
    double size = sqrt(along(d->commanded, d->commanded));
    double scale = d->forces_on ? (size > d->most_force ? d->most_force / size : 1.0) : 0.0;
    for (int i = 0; i < 3; i++)
        d->applied[i] = scale * d->commanded[i];
    note(d, now);
}

static void switch_off(struct device *d, int64_t cause, double now)
{
    d->forces_on = 0;
    d->braking = 1;
    d->cause = cause;
    apply(d, now);
}

/* Advance the handle to `now` with the applied force. */
static void move(struct device *d, double now)
{
    int64_t until = (int64_t)((now - d->began) / STEP);
    while (d->tick < until) {
        int64_t steps = until - d->tick > CHUNK ? CHUNK : until - d->tick;
        double duration = (double)steps * STEP, force[3], speed[3];
        const double brake = d->braking && !d->forces_on ? d->brake : 0.0;
        in_space(d, (const double *)d->speed, 0.0, speed);
        for (int i = 0; i < 3; i++)
            force[i] = d->applied[i] + d->weight[i] - brake * speed[i];
        d->tick += steps;
        ((part)d->give)(d->plant, along(d->axes[0], force), along(d->axes[1], force));
        ((part)d->take)(d->plant, (double)d->tick * STEP, 0.0);
        const double drag = d->damping + brake, final = (along(d->axes[2], force) - d->sag) / drag;
        const double left = exp(-duration * drag / d->mass);
        d->height += final * duration + (d->rise - final) * (1.0 - left) * d->mass / drag;
        d->rise = final + (d->rise - final) * left;
        if (fabs(d->height) > d->room) {
            d->height = copysign(d->room, d->height);
            d->rise = 0.0;
        }
        in_space(d, (const double *)d->speed, d->rise, speed);
        if (d->forces_on && d->speed_limit > 0.0 && sqrt(along(speed, speed)) > d->speed_limit)
            switch_off(d, d->speed_cause, d->began + (double)d->tick * STEP);
    }
}

static uint64_t present_faults(const struct device *d, double now)
{
    uint64_t faults = (uint64_t)__atomic_load_n(&d->switched, __ATOMIC_ACQUIRE);
    for (int i = 0; i < MOST_TIMED; i++) {
        const double since = d->timed[i].bits & (uint64_t)d->opening ? d->opened : d->origin;
        if (since > 0.0 && now - since >= d->timed[i].start && now - since < d->timed[i].end)
            faults |= d->timed[i].bits;
    }
    return faults;
}

/* Advance the device to `now`: the watchdog, and faults that switch the forces off when they begin. */
static uint64_t advance(struct device *d, double now)
{
    const double expiry = d->renewed + d->watchdog;
    if (d->forces_on && d->watchdog > 0.0 && now > expiry) {
        move(d, expiry);
        switch_off(d, d->watchdog_cause, expiry);
    }
    move(d, now);
    const uint64_t faults = present_faults(d, now);
    for (int i = 0; i < MOST_FAULTS; i++)
        if (has_fault(faults & ~(uint64_t)d->past_faults, i) && d->causes[i] && d->forces_on)
            switch_off(d, d->causes[i], now);
    d->past_faults = (int64_t)faults;
    return faults;
}

static void set(struct device *d, int parameter, double value, double now)
{
    switch (parameter) {
    case SET_FORCES:
        d->forces_on = value != 0.0;
        d->renewed = now;
        if (d->forces_on)
            d->cause = 0;
        apply(d, now);
        break;
    case SET_BRAKES:
        d->braking = value != 0.0;
        break;
    case SET_WATCHDOG:
        d->watchdog = value;
        d->renewed = now;
        break;
    case SET_SPEED_LIMIT:
        d->speed_limit = value;
        break;
    case SET_HOMED:
        d->homed = value != 0.0;
        break;
    case SET_OUTPUT:
        d->output = (int64_t)value;
        note(d, now);
        break;
    default:
        break;
    }
}

static void execute(struct device *d, const struct command *command, double now)
{
    if (command->kind == COMMAND_SET) {
        set(d, command->parameter, command->value, now);
    } else if (command->kind == COMMAND_FORCE) {
        memcpy(d->commanded, command->force, sizeof d->commanded);
        d->renewed = now;
        if (d->origin == 0.0 && d->forces_on && along(command->force, command->force) > 0.0)
            d->origin = now;
        apply(d, now);
    }
}

static void fill(const struct device *d, struct state *state, uint64_t faults, double now)
{
    memset(state, 0, sizeof *state);
    state->cause = (int32_t)d->cause;
    state->forces_on = (int32_t)d->forces_on;
    state->braking = (int32_t)(d->braking && !d->forces_on);
    state->homed = (int32_t)d->homed;
    state->buttons = (int32_t)*(const int64_t *)d->buttons;
    state->faults = faults;
    state->time = now;
    memcpy(state->weight, d->weight, sizeof state->weight);
    state->most_force = d->most_force;
    in_space(d, (const double *)d->place, d->height, state->position);
    for (int i = 0; i < 3; i++) {
        double place = state->position[i] + d->middle[i] + (d->homed ? 0.0 : d->astray[i]);
        state->position[i] = d->count > 0.0 ? round(place / d->count) * d->count : place;
    }
}

static void pause_for(double duration)
{
    const struct timespec wanted = {(time_t)duration, (long)(1e9 * (duration - floor(duration)))};
    nanosleep(&wanted, NULL);
}

/* Answer the command that waits at `host`; return 0 when the host or the plug is gone. */
static int answer(struct device *d, int host)
{
    struct command command;
    if (recv(host, &command, sizeof command, 0) != (ssize_t)sizeof command)
        return 0;
    double now = monotonic(), delay = 0.0;
    uint64_t faults = advance(d, now);
    if (faults & (uint64_t)d->unplugging)
        return 0;
    execute(d, &command, now);
    d->transfers++;
    faults = present_faults(d, now); /* the first force starts the time of the faults */
    for (int i = 0; i < MOST_FAULTS; i++)
        if (has_fault(faults, i) && d->delays[i] > delay)
            delay = d->delays[i];
    if (faults & (uint64_t)d->mute)
        return 1;
    struct state state;
    fill(d, &state, faults, now);
    if (delay > 0.0)
        pause_for(delay);
    return send(host, &state, sizeof state, MSG_NOSIGNAL) == (ssize_t)sizeof state;
}

/* Send the state to a new host; return 0 if it is not served. */
static int greet(struct device *d, int host, int busy)
{
    const double now = monotonic();
    struct state state;
    if (!busy)
        d->opened = now;
    const uint64_t faults = advance(d, now);
    fill(d, &state, faults, now);
    state.busy = busy;
    if (!(faults & (uint64_t)d->unplugging) && send(host, &state, sizeof state, MSG_NOSIGNAL) > 0 && !busy)
        return 1;
    close(host);
    return 0;
}

/* Note a time `lost` in which this thread was not executed. */
static void note_stall(struct device *d, double now, double lost)
{
    d->alive = now;
    if (lost > d->stall || now - d->stalled_at > MEMORY) {
        d->stall = lost;
        d->stalled_at = now;
    }
}

/* Serve hosts at the socket `listener`, one at a time, until the file `until` can be read or has ended. */
void serve(struct device *d, int listener, int until)
{
    int host = -1;
    d->began = monotonic();
    d->homed = d->homed_at_first;
    d->braking = 1;
    for (;;) {
        struct pollfd files[] = {{until, POLLIN, 0}, {listener, POLLIN, 0}, {host, POLLIN, 0}};
        const double before = monotonic();
        poll(files, 3, IDLE);
        const double now = monotonic();
        note_stall(d, now, now - before - 1e-3 * IDLE);
        if (files[0].revents)
            break;
        if (host >= 0 && files[2].revents && !answer(d, host)) {
            close(host);
            host = -1;
            d->connected = 0;
        }
        if (files[1].revents & POLLIN) {
            int caller = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (greet(d, caller, host >= 0)) {
                host = caller;
                d->connected = 1;
                d->origin = 0.0; /* the times of faults count from the first force of every host */
            }
        }
        advance(d, monotonic());
        if (host >= 0 && (uint64_t)d->past_faults & (uint64_t)d->unplugging) {
            close(host);
            host = -1;
            d->connected = 0;
        }
    }
    if (host >= 0)
        close(host);
}
