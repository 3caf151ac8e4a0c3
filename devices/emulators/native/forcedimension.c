/* Emulated Force Dimension SDK (libdrd, which contains libdhd): its C symbols, in front of emulated devices.

   Written from the maker's prototypes and documentation (SDK 3.6 to 3.16). Where that says nothing (the period of the
   time guard, the weights of the velocity estimator, the duration of a transfer), the simplest behaviour is chosen.
   Settings of the controller (forces, brakes, watchdog, velocity threshold) are kept by the device; the maximum force
   and gravity compensation by the library, as in the SDK. */

#include "host.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEVICES 8
#define STATUS_COUNT 17
#define TIME_GUARD 200e-6  /* default period [s] */
#define WATCHDOG_UNIT 125e-6
#define HISTORY 256
#define HOMING 200000000   /* duration of the initialisation [ns] */

enum result { TIMEGUARD = 1, MOTOR_SATURATED = 2 };
enum error {
    NO_ERROR, ERROR, ERROR_COM, ERROR_DHC_BUSY, ERROR_NO_DRIVER_FOUND, ERROR_NO_DEVICE_FOUND, ERROR_NOT_AVAILABLE,
    ERROR_TIMEOUT, ERROR_GEOMETRY, ERROR_EXPERT_MODE_DISABLED, ERROR_NOT_IMPLEMENTED, ERROR_OUT_OF_MEMORY,
    ERROR_DEVICE_NOT_READY, ERROR_FILE_NOT_FOUND, ERROR_CONFIGURATION, ERROR_INVALID_INDEX, ERROR_DEPRECATED,
    ERROR_NULL_ARGUMENT, ERROR_REDUNDANT_FAIL, ERROR_NOT_ENABLED, ERROR_DEVICE_IN_USE, ERROR_INVALID
};
static const char *const texts[] = {
    "no error", "undocumented error", "communication error", "device controller is busy", "no driver found",
    "no device found", "feature not available", "timeout", "geometry error", "expert mode disabled", "not implemented",
    "out of memory", "device not ready", "file not found", "configuration error", "invalid device index", "deprecated",
    "null argument", "redundancy failure", "feature not enabled", "device in use", "invalid value"
};

struct device {
    struct link link;
    struct listed listed;
    bool open, gravity;
    double max_force, guard, force[3];
    unsigned watchdog, threshold;
    int window;                          /* [ms] */
    bool instant;
    double position[3], read;            /* of the last communication, and its time */
    double times[HISTORY], places[HISTORY][3];
    unsigned long reads;
    double first_read;
};

static struct device devices[MOST_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int current = 0;
static bool expert = false;
static __thread int last_error = NO_ERROR;

static int failed(int error)
{
    last_error = error;
    return -1;
}

static struct device *chosen(char id)
{
    int number = id == -1 ? current : id;
    if (number < 0 || number >= MOST_DEVICES || !devices[number].open) {
        failed(ERROR_INVALID_INDEX);
        return NULL;
    }
    return &devices[number];
}

static int result_of(enum link_error error)
{
    static const int errors[] = {NO_ERROR, ERROR_COM, ERROR_TIMEOUT, ERROR_DEVICE_IN_USE, ERROR_INVALID_INDEX};
    return error == LINK_OK ? 0 : failed(errors[error]);
}

static int set(char id, enum parameter parameter, double value)
{
    pthread_mutex_lock(&lock);
    struct device *d = chosen(id);
    int result = d ? result_of(link_set(&d->link, parameter, value)) : -1;
    pthread_mutex_unlock(&lock);
    return result;
}

/* --- errors and devices ---------------------------------------------------------------------------------------- */

int dhdErrorGetLast(void) { return last_error; }

const char *dhdErrorGetStr(int error)
{
    return error >= 0 && error < (int)(sizeof texts / sizeof *texts) ? texts[error] : "unknown error";
}

const char *dhdErrorGetLastStr(void) { return dhdErrorGetStr(last_error); }

void dhdEnableSimulator(bool on) { (void)on; }

void dhdGetSDKVersion(int *major, int *minor, int *release, int *revision)
{
    *major = 3;
    *minor = 16;
    *release = *revision = 0;
}

int dhdGetDeviceCount(void)
{
    struct listed found[MOST_DEVICES];
    return link_list(found, MOST_DEVICES);
}

int dhdGetAvailableCount(void)
{
    struct listed found[MOST_DEVICES];
    int count = link_list(found, MOST_DEVICES), available = 0;
    for (int i = 0; i < count; i++) {
        struct link link;
        if (devices[i].open || link_open(&link, &found[i]) != LINK_OK)
            continue;
        link_close(&link);
        available++;
    }
    return available;
}

int dhdOpenID(char id)
{
    struct listed found[MOST_DEVICES];
    pthread_mutex_lock(&lock);
    int count = link_list(found, MOST_DEVICES), result = id;
    if (id < 0 || id >= count) {
        result = failed(ERROR_NO_DEVICE_FOUND);
    } else if (!devices[(int)id].open) {
        struct device *d = &devices[(int)id];
        memset(d, 0, sizeof *d);
        d->listed = found[(int)id];
        d->gravity = true;
        d->max_force = -1.0;
        d->guard = TIME_GUARD;
        d->window = 20;
        d->threshold = 3;
        if (result_of(link_open(&d->link, &d->listed)) < 0)
            result = -1;
        else
            d->open = true;
    }
    if (result >= 0)
        current = result;
    pthread_mutex_unlock(&lock);
    return result;
}

int dhdOpen(void)
{
    int count = dhdGetDeviceCount();
    for (int i = 0; i < count; i++)
        if (!devices[i].open && dhdOpenID((char)i) >= 0)
            return i;
    return failed(count ? ERROR_DEVICE_IN_USE : ERROR_NO_DEVICE_FOUND);
}

int dhdOpenSerial(int serial)
{
    struct listed found[MOST_DEVICES];
    int count = link_list(found, MOST_DEVICES);
    for (int i = 0; i < count; i++)
        if (atoi(found[i].name) == serial)
            return dhdOpenID((char)i);
    return failed(ERROR_NO_DEVICE_FOUND);
}

int dhdClose(char id)
{
    pthread_mutex_lock(&lock);
    struct device *d = chosen(id);
    if (d) {
        link_close(&d->link);
        d->open = false;
    }
    pthread_mutex_unlock(&lock);
    return d ? 0 : -1;
}

int dhdGetSerialNumber(unsigned short *serial, char id)
{
    struct device *d = chosen(id);
    if (!d)
        return -1;
    *serial = (unsigned short)atoi(d->listed.name);
    return 0;
}

int dhdGetSystemType(char id)
{
    struct device *d = chosen(id);
    return d ? d->listed.kind : -1;
}

const char *dhdGetSystemName(char id)
{
    switch (dhdGetSystemType(id)) {
    case 33: return "omega.3";
    case 34: case 36: return "omega.6";
    case 35: case 37: return "omega.7";
    case 60: return "Falcon";
    case 63: return "delta.3";
    case 104: case 105: return "sigma.7";
    case 108: case 109: return "lambda.7";
    case -1: return NULL;
    default: return "custom device";
    }
}

int dhdGetVersion(double *version, char id)
{
    if (!chosen(id))
        return -1;
    *version = 3.0;
    return 0;
}

int dhdGetComMode(char id) { return chosen(id) ? 1 : -1; }

int dhdGetStatus(int status[], char id)
{
    pthread_mutex_lock(&lock);
    struct device *d = chosen(id);
    int result = d ? result_of(link_read(&d->link)) : -1;
    if (result == 0) {
        const struct state *s = &d->link.state;
        const int reset = !s->homed || has_fault(s->faults, FAULT_LOST_REFERENCE);
        const int off = s->cause != 0;
        const int values[STATUS_COUNT] = {!has_fault(s->faults, FAULT_NO_POWER), 1, 1, reset, !s->forces_on && !s->braking,
                                          s->forces_on, s->braking, 0, 0, 0, d->gravity, d->guard > 0.0, 0, 0,
                                          off ? s->cause : 0, 0, 0};
        memcpy(status, values, sizeof values);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* --- motion and forces ----------------------------------------------------------------------------------------- */

/* Keep the position of the last transfer, and the history for velocities. */
static void keep(struct device *d)
{
    const struct state *s = &d->link.state;
    if (!has_fault(s->faults, FAULT_STUCK) || d->reads == 0)
        memcpy(d->position, s->position, sizeof d->position);
    d->read = s->time;
    if (d->reads == 0)
        d->first_read = s->time;
    d->times[d->reads % HISTORY] = d->read;
    memcpy(d->places[d->reads % HISTORY], d->position, sizeof d->position);
    d->reads++;
}

int dhdGetPosition(double *x, double *y, double *z, char id)
{
    pthread_mutex_lock(&lock);
    struct device *d = chosen(id);
    int result = d ? 0 : -1;
    if (d && d->reads && monotonic() - d->read < d->guard) {
        result = TIMEGUARD;
    } else if (d) {
        result = result_of(link_read(&d->link));
        const uint64_t faults = d->link.state.faults;
        if (result == 0 && has_fault(faults, FAULT_POSITION_ERROR))
            result = failed(ERROR_COM);
        else if (result == 0 && d->reads && has_fault(faults, FAULT_TIME_GUARD))
            result = TIMEGUARD;
        else if (result == 0)
            keep(d);
    }
    const double nothing[3] = {0.0, 0.0, 0.0}, *place = result < 0 ? nothing : d->position;
    *x = place[0];
    *y = place[1];
    *z = place[2];
    pthread_mutex_unlock(&lock);
    return result;
}

int dhdConfigLinearVelocity(int window, int mode, char id)
{
    struct device *d = chosen(id);
    if (!d)
        return -1;
    if (mode != 0 && mode != 2)
        return failed(ERROR_INVALID);
    d->window = window;
    d->instant = mode == 2;
    return 0;
}

/* The mean velocity over the window, or between the last two positions. */
int dhdGetLinearVelocity(double *x, double *y, double *z, char id)
{
    struct device *d = chosen(id);
    if (!d)
        return -1;
    double velocity[3] = {0.0, 0.0, 0.0};
    if (d->reads > 1) {
        const unsigned long last = d->reads - 1;
        unsigned long first = last - 1;
        while (!d->instant && first > 0 && last - first < HISTORY - 1 &&
               d->times[last % HISTORY] - d->times[(first - 1) % HISTORY] <= 1e-3 * d->window)
            first--;
        const double elapsed = d->times[last % HISTORY] - d->times[first % HISTORY];
        for (int i = 0; i < 3; i++)
            velocity[i] = (d->places[last % HISTORY][i] - d->places[first % HISTORY][i]) / elapsed;
    }
    *x = velocity[0];
    *y = velocity[1];
    *z = velocity[2];
    return 0;
}

int dhdSetForce(double x, double y, double z, char id)
{
    pthread_mutex_lock(&lock);
    struct device *d = chosen(id);
    int result = d ? 0 : -1;
    if (d) {
        double force[3] = {x, y, z}, size = sqrt(x * x + y * y + z * z), scale = 1.0;
        if (!isfinite(size)) {
            pthread_mutex_unlock(&lock);
            return failed(ERROR_INVALID);
        }
        if (d->max_force >= 0.0 && size > d->max_force)
            scale = d->max_force / size;
        for (int i = 0; i < 3; i++)
            force[i] = scale * force[i] - (d->gravity ? d->link.state.weight[i] : 0.0);
        size = sqrt(force[0] * force[0] + force[1] * force[1] + force[2] * force[2]);
        uint64_t faults = d->link.state.faults;
        const double most = d->link.state.most_force;
        const bool saturated = size > most || has_fault(faults, FAULT_SATURATED);
        for (int i = 0; i < 3 && saturated; i++)
            force[i] *= size > most ? most / size : 0.5;
        memcpy(d->force, force, sizeof force);
        if (has_fault(faults, FAULT_FORCE_ERROR)) {
            result = result_of(link_read(&d->link));
            faults = d->link.state.faults; /* the fault may be over */
        }
        if (result == 0 && has_fault(faults, FAULT_FORCE_ERROR))
            result = failed(ERROR_COM); /* the command is lost */
        else if (result == 0)
            result = result_of(link_force(&d->link, force));
        if (result == 0 && saturated)
            result = MOTOR_SATURATED;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int dhdGetForce(double *x, double *y, double *z, char id)
{
    struct device *d = chosen(id);
    if (!d)
        return -1;
    *x = d->force[0];
    *y = d->force[1];
    *z = d->force[2];
    return 0;
}

unsigned dhdGetButtonMask(char id)
{
    struct device *d = chosen(id);
    return d ? (unsigned)d->link.state.buttons : 0u;
}

/* Output bits, which the delta.3 and the sigma.7 have. */
int dhdSetOutput(unsigned output, char id)
{
    const int type = dhdGetSystemType(id);
    return type == -1 ? -1 : type == 63 || type == 104 || type == 105 ? set(id, SET_OUTPUT, output)
                                                                      : failed(ERROR_NOT_AVAILABLE);
}

/* Rate of the communication [kHz]. */
double dhdGetComFreq(char id)
{
    struct device *d = chosen(id);
    return d && d->read > d->first_read ? 1e-3 * (double)d->reads / (d->read - d->first_read) : 0.0;
}

int dhdEnableForce(bool on, char id) { return set(id, SET_FORCES, on); }
int dhdSetBrakes(bool on, char id) { return set(id, SET_BRAKES, on); }
int dhdStop(char id) { return set(id, SET_FORCES, 0.0) < 0 ? -1 : set(id, SET_BRAKES, 1.0); }

int dhdSetGravityCompensation(bool on, char id)
{
    struct device *d = chosen(id);
    if (!d)
        return -1;
    d->gravity = on;
    return 0;
}

int dhdSetEffectorMass(double mass, char id) { return !chosen(id) ? -1 : mass >= 0.0 ? 0 : failed(ERROR_INVALID); }

int dhdSetMaxForce(double limit, char id)
{
    struct device *d = chosen(id);
    if (!d)
        return -1;
    d->max_force = limit;
    return 0;
}

double dhdGetMaxForce(char id)
{
    struct device *d = chosen(id);
    return d ? d->max_force : -1.0;
}

/* --- expert functions ------------------------------------------------------------------------------------------ */

int dhdEnableExpertMode(void)
{
    expert = true;
    return 0;
}

int dhdDisableExpertMode(void)
{
    expert = false;
    return 0;
}

static struct device *chosen_by_expert(char id)
{
    if (expert)
        return chosen(id);
    failed(ERROR_EXPERT_MODE_DISABLED);
    return NULL;
}

int dhdSetTimeGuard(int period, char id)
{
    struct device *d = chosen_by_expert(id);
    if (!d)
        return -1;
    d->guard = period < 0 ? TIME_GUARD : 1e-6 * period;
    return 0;
}

int dhdSetVelocityThreshold(unsigned threshold, char id)
{
    struct device *d = chosen_by_expert(id);
    if (!d || set(id, SET_SPEED_LIMIT, threshold) < 0)
        return -1;
    d->threshold = threshold;
    return 0;
}

int dhdGetVelocityThreshold(unsigned *threshold, char id)
{
    struct device *d = chosen_by_expert(id);
    if (!d)
        return -1;
    *threshold = d->threshold;
    return 0;
}

int dhdSetWatchdog(unsigned char duration, char id)
{
    struct device *d = chosen_by_expert(id);
    if (!d || set(id, SET_WATCHDOG, WATCHDOG_UNIT * duration) < 0)
        return -1;
    d->watchdog = duration;
    return 0;
}

int dhdGetWatchdog(unsigned char *duration, char id)
{
    struct device *d = chosen_by_expert(id);
    if (!d)
        return -1;
    *duration = (unsigned char)d->watchdog;
    return 0;
}

/* --- robotic functions ----------------------------------------------------------------------------------------- */

int drdOpen(void) { return dhdOpen(); }
int drdOpenID(char id) { return dhdOpenID(id); }
int drdClose(char id) { return dhdClose(id); }
bool drdIsSupported(char id) { return chosen(id) != NULL; }

bool drdIsInitialized(char id)
{
    struct device *d = chosen(id);
    return d && d->link.state.homed && !has_fault(d->link.state.faults, FAULT_LOST_REFERENCE);
}

int drdAutoInit(char id)
{
    const struct timespec homing = {0, HOMING};
    nanosleep(&homing, NULL);
    return set(id, SET_HOMED, 1.0);
}

int drdCheckInit(char id) { return drdIsInitialized(id) ? 0 : failed(ERROR_DEVICE_NOT_READY); }

int drdStop(bool forces, char id) { return forces ? (chosen(id) ? 0 : -1) : dhdStop(id); }
