/* Emulated HDAPI of OpenHaptics (libHD): its C symbols, in front of emulated devices.

   Written from the maker's reference and guide of versions 3.0 and 3.5. As documented there: errors are kept on one
   stack for all devices; there is one scheduler, whose thread runs the callbacks by priority; a frame takes the state
   at its beginning, when the force becomes zero, and sends the force at its end; at most one frame per device and tick;
   state is set within frames only; forces need the capability and a running scheduler. Where they say nothing (the
   watchdog of the device, the effect of a force error), the simplest behaviour is chosen: the device drops a force after
   WATCHDOG without a frame and recovers at the next one, and a frame with a force error sends no force. */

#define _GNU_SOURCE
#include "host.h"
#include "openhaptics.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INVALID_HANDLE 0xFFFFFFFFu
#define MOST_DEVICES 8
#define MOST_CALLBACKS 64
#define MOST_ERRORS 256
#define RATE 1000
#define WATCHDOG 0.05         /* of the device [s] */
#define MAX_FORCE 3.3         /* [N] */
#define CONTINUOUS_FORCE 0.88 /* [N] */
#define WARMING 30.0          /* time constant of the predicted temperature [s] */
#define MILLIMETRES 1e3

enum {
    SUCCESS = 0, INVALID_ENUM = 0x100, INVALID_VALUE, INVALID_OPERATION, INVALID_INPUT_TYPE, BAD_HANDLE,
    WARM_MOTORS = 0x200, EXCEEDED_MAX_FORCE, EXCEEDED_MAX_FORCE_IMPULSE, EXCEEDED_MAX_VELOCITY, FORCE_ERROR,
    DEVICE_FAULT = 0x300, DEVICE_ALREADY_INITIATED, COMM_ERROR, COMM_CONFIG_ERROR, TIMER_ERROR,
    ILLEGAL_BEGIN = 0x400, ILLEGAL_END, FRAME_ERROR, INVALID_PRIORITY = 0x500, SCHEDULER_FULL, INVALID_LICENSE = 0x600
};
enum {
    BUTTONS = 0x2000, POSITION = 0x2050, VELOCITY = 0x2051, MODEL = 0x2501, DRIVER_VERSION, VENDOR, SERIAL_NUMBER,
    FIRMWARE_VERSION, MAX_WORKSPACE = 0x2550, USABLE_WORKSPACE = 0x2551, INPUT_DOF = 0x2553, OUTPUT_DOF, CALIBRATION_STYLE,
    UPDATE_RATE = 0x2600, NOMINAL_MAX_FORCE = 0x2603, NOMINAL_MAX_CONTINUOUS_FORCE, MOTOR_TEMPERATURE,
    CURRENT_FORCE = 0x2700, LAST_FORCE = 0x2800
};
enum { FORCE_OUTPUT = 0x4000, SOFTWARE_FORCE_LIMIT = 0x4003, ONE_FRAME_LIMIT };
enum { CALIBRATION_OK = 0x5000, CALIBRATION_NEEDS_UPDATE, CALIBRATION_NEEDS_MANUAL_INPUT };
enum { STYLE_INKWELL = 4 };

struct device {
    struct link link;
    struct listed listed;
    int open, in_frame, framed;             /* framed: number of the tick of the last frame */
    unsigned enabled;                       /* bits of the capabilities from FORCE_OUTPUT on */
    double position[3], velocity[3], taken; /* of the last frame [m], [m/s], and its time */
    double force[3], last_force[3];         /* set in this frame, and in the one before [N] */
    double temperature;
};

struct scheduled {
    HDSchedulerCallback callback;
    void *data;
    HDushort priority;
    HDSchedulerHandle handle; /* 0 for none */
};

static struct device devices[MOST_DEVICES];
static HHD current = INVALID_HANDLE;
static HDErrorInfo errors[MOST_ERRORS];
static int error_count;
static struct scheduled callbacks[MOST_CALLBACKS];
static HDSchedulerHandle last_handle;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the errors and callbacks */
static pthread_cond_t completed = PTHREAD_COND_INITIALIZER;
static pthread_t scheduler;
static volatile int running;
static int tick;
static double tick_started;

/* --- errors ---------------------------------------------------------------------------------------------------- */

static void fail(HDerror code, int internal, HHD device)
{
    pthread_mutex_lock(&lock);
    if (error_count < MOST_ERRORS)
        errors[error_count++] = (HDErrorInfo){code, internal, device};
    pthread_mutex_unlock(&lock);
}

HDErrorInfo hdGetError(void)
{
    HDErrorInfo error = {SUCCESS, 0, current};
    pthread_mutex_lock(&lock);
    if (error_count)
        error = errors[--error_count];
    pthread_mutex_unlock(&lock);
    return error;
}

HDstring hdGetErrorString(HDerror code)
{
    switch (code) {
    case SUCCESS: return "Success";
    case WARM_MOTORS: return "Warm motors";
    case COMM_ERROR: return "Communication error";
    case DEVICE_FAULT: return "Device fault";
    default: return "Error";
    }
}

/* --- devices --------------------------------------------------------------------------------------------------- */

static struct device *device_of(HHD handle)
{
    if (handle < MOST_DEVICES && devices[handle].open)
        return &devices[handle];
    fail(BAD_HANDLE, 0, handle);
    return NULL;
}

static int faulty(const struct device *d, int number) { return has_fault(d->link.state.faults, number); }

/* Report a failed transfer. */
static int transferred(struct device *d, enum link_error error)
{
    if (error != LINK_OK)
        fail(COMM_ERROR, -(int)error, (HHD)(d - devices));
    return error == LINK_OK;
}

HHD hdInitDevice(HDstring name)
{
    struct listed found[MOST_DEVICES];
    const int count = link_list(found, MOST_DEVICES);
    int number = 0;
    while (name && number < count && strcmp(found[number].name, name))
        number++;
    if (number >= count) {
        fail(DEVICE_FAULT, -1, INVALID_HANDLE);
        return INVALID_HANDLE;
    }
    struct device *d = &devices[number];
    if (d->open) {
        fail(DEVICE_ALREADY_INITIATED, -2, (HHD)number);
        return INVALID_HANDLE;
    }
    memset(d, 0, sizeof *d);
    d->listed = found[number];
    d->enabled = 1u << (ONE_FRAME_LIMIT - FORCE_OUTPUT) | 1u << (SOFTWARE_FORCE_LIMIT - FORCE_OUTPUT);
    const enum link_error error = link_open(&d->link, &d->listed);
    HDerror code = SUCCESS;
    if (error != LINK_OK)
        code = error == LINK_BUSY ? DEVICE_ALREADY_INITIATED : COMM_ERROR;
    else if (faulty(d, FAULT_NO_LICENCE))
        code = INVALID_LICENSE;
    else if (faulty(d, FAULT_WRONG_PORT))
        code = COMM_CONFIG_ERROR;
    if (code == SUCCESS && (link_set(&d->link, SET_WATCHDOG, WATCHDOG) != LINK_OK ||
                            link_set(&d->link, SET_BRAKES, 0.0) != LINK_OK))
        code = COMM_ERROR;
    if (code != SUCCESS) {
        link_close(&d->link);
        fail(code, -3, INVALID_HANDLE);
        return INVALID_HANDLE;
    }
    d->open = 1;
    d->framed = -1;
    return current = (HHD)number;
}

void hdMakeCurrentDevice(HHD handle)
{
    if (device_of(handle))
        current = handle;
}

HHD hdGetCurrentDevice(void) { return current; }

void hdDisableDevice(HHD handle)
{
    struct device *d = device_of(handle);
    if (!d)
        return;
    link_set(&d->link, SET_FORCES, 0.0);
    link_close(&d->link);
    d->open = 0;
    if (current == handle)
        current = INVALID_HANDLE;
}

/* --- capabilities ---------------------------------------------------------------------------------------------- */

static void enable(HDenum capability, int on)
{
    struct device *d = device_of(current);
    if (capability < FORCE_OUTPUT || capability > ONE_FRAME_LIMIT) {
        fail(INVALID_ENUM, 0, current);
    } else if (d) {
        const unsigned bit = 1u << (capability - FORCE_OUTPUT);
        d->enabled = on ? d->enabled | bit : d->enabled & ~bit;
        if (capability == FORCE_OUTPUT && running)
            transferred(d, link_set(&d->link, SET_FORCES, on));
    }
}

void hdEnable(HDenum capability) { enable(capability, 1); }
void hdDisable(HDenum capability) { enable(capability, 0); }

HDboolean hdIsEnabled(HDenum capability)
{
    struct device *d = device_of(current);
    if (capability < FORCE_OUTPUT || capability > ONE_FRAME_LIMIT) {
        fail(INVALID_ENUM, 0, current);
        return 0;
    }
    return d && d->enabled >> (capability - FORCE_OUTPUT) & 1u;
}

/* --- frames ---------------------------------------------------------------------------------------------------- */

void hdBeginFrame(HHD handle)
{
    struct device *d = device_of(handle);
    if (!d)
        return;
    if (d->in_frame || (d->framed == tick && d->enabled >> (ONE_FRAME_LIMIT - FORCE_OUTPUT) & 1u)) {
        fail(ILLEGAL_BEGIN, 0, handle);
        return;
    }
    current = handle;
    d->in_frame = 1;
    d->framed = tick;
    memcpy(d->last_force, d->force, sizeof d->force);
    memset(d->force, 0, sizeof d->force);
    do {
        if (!transferred(d, link_read(&d->link)))
            return;
    } while (faulty(d, FAULT_HANG) && !clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, 1000000}, NULL));
    if (running && d->enabled & 1u && !d->link.state.forces_on) { /* recover from the watchdog, without the old force */
        const double none[3] = {0.0, 0.0, 0.0};
        if (!transferred(d, link_force(&d->link, none)) || !transferred(d, link_set(&d->link, SET_FORCES, 1.0)))
            return;
    }
    if (faulty(d, FAULT_DEVICE_FAULT))
        fail(DEVICE_FAULT, -7, handle);
    if (faulty(d, FAULT_TIMER_ERROR))
        fail(TIMER_ERROR, -8, handle);
    const double now = d->link.state.time, elapsed = now - d->taken;
    for (int i = 0; i < 3 && !faulty(d, FAULT_STUCK); i++) {
        const double share = 1.0 - exp(-elapsed / 5e-3), place = d->link.state.position[i];
        if (d->taken > 0.0 && elapsed > 0.0)
            d->velocity[i] += share * ((place - d->position[i]) / elapsed - d->velocity[i]);
        d->position[i] = place;
    }
    d->taken = now;
}

static HDerror force_error(const struct device *d, double size)
{
    if (faulty(d, FAULT_WARM_MOTORS))
        return WARM_MOTORS;
    if (faulty(d, FAULT_MAX_FORCE) ||
        (size > MAX_FORCE * (1.0 + 1e-9) && d->enabled >> (SOFTWARE_FORCE_LIMIT - FORCE_OUTPUT) & 1u))
        return EXCEEDED_MAX_FORCE;
    if (faulty(d, FAULT_FORCE_IMPULSE))
        return EXCEEDED_MAX_FORCE_IMPULSE;
    if (faulty(d, FAULT_MAX_VELOCITY))
        return EXCEEDED_MAX_VELOCITY;
    return faulty(d, FAULT_FORCE_ERROR) ? FORCE_ERROR : SUCCESS;
}

void hdEndFrame(HHD handle)
{
    struct device *d = device_of(handle);
    if (!d)
        return;
    if (!d->in_frame) {
        fail(ILLEGAL_END, 0, handle);
        return;
    }
    d->in_frame = 0;
    double force[3], size = sqrt(d->force[0] * d->force[0] + d->force[1] * d->force[1] + d->force[2] * d->force[2]);
    d->temperature += (size * size / (MAX_FORCE * MAX_FORCE) - d->temperature) / (WARMING * RATE);
    const HDerror error = d->enabled & 1u ? force_error(d, size) : SUCCESS;
    if (error != SUCCESS)
        fail(error, -9, handle);
    for (int i = 0; i < 3; i++)
        force[i] = error == SUCCESS ? d->force[i] : 0.0;
    if (faulty(d, FAULT_COMM_ERROR))
        fail(COMM_ERROR, -10, handle); /* the force is lost */
    else
        transferred(d, link_force(&d->link, force));
}

/* --- state ----------------------------------------------------------------------------------------------------- */

static int numbers_of(const struct device *d, HDenum name, double *numbers)
{
    static const double usable[] = {-80.0, -60.0, -35.0, 80.0, 60.0, 35.0};
    static const double most[] = {-210.0, -110.0, -85.0, 210.0, 205.0, 130.0};
    const int position = name == POSITION, force = name == CURRENT_FORCE;
    switch (name) {
    case POSITION:
    case VELOCITY:
        for (int i = 0; i < 3; i++)
            numbers[i] = MILLIMETRES * (position ? d->position[i] : d->velocity[i]);
        return 3;
    case CURRENT_FORCE:
    case LAST_FORCE:
        memcpy(numbers, force ? d->force : d->last_force, sizeof d->force);
        return 3;
    case USABLE_WORKSPACE:
    case MAX_WORKSPACE:
        memcpy(numbers, name == MAX_WORKSPACE ? most : usable, sizeof usable);
        return 6;
    case NOMINAL_MAX_FORCE:
        numbers[0] = MAX_FORCE;
        return 1;
    case NOMINAL_MAX_CONTINUOUS_FORCE:
        numbers[0] = CONTINUOUS_FORCE;
        return 1;
    case MOTOR_TEMPERATURE:
        for (int i = 0; i < 3; i++)
            numbers[i] = d->temperature;
        return 3;
    default:
        return 0;
    }
}

void hdGetDoublev(HDenum name, double *numbers)
{
    const struct device *d = device_of(current);
    if (d && !numbers_of(d, name, numbers))
        fail(INVALID_ENUM, 0, current);
}

void hdGetFloatv(HDenum name, float *numbers)
{
    const struct device *d = device_of(current);
    double found[6];
    const int count = d ? numbers_of(d, name, found) : 0;
    if (d && !count)
        fail(INVALID_ENUM, 0, current);
    for (int i = 0; i < count; i++)
        numbers[i] = (float)found[i];
}

void hdGetIntegerv(HDenum name, int *numbers)
{
    const struct device *d = device_of(current);
    if (!d)
        return;
    switch (name) {
    case BUTTONS: *numbers = d->link.state.buttons; break;
    case INPUT_DOF: *numbers = 6; break;
    case OUTPUT_DOF: *numbers = 3; break;
    case CALIBRATION_STYLE: *numbers = STYLE_INKWELL; break;
    case UPDATE_RATE: *numbers = RATE; break;
    default: fail(INVALID_ENUM, 0, current);
    }
}

HDstring hdGetString(HDenum name)
{
    const struct device *d = device_of(current);
    switch (d ? name : 0) {
    case 0: return NULL;
    case MODEL: return "Touch";
    case VENDOR: return "emulated";
    case SERIAL_NUMBER: return d->listed.name;
    case DRIVER_VERSION: case FIRMWARE_VERSION: return "0";
    default: fail(INVALID_ENUM, 0, current); return NULL;
    }
}

void hdSetDoublev(HDenum name, const double *numbers)
{
    struct device *d = device_of(current);
    if (!d)
        return;
    if (name != CURRENT_FORCE)
        fail(INVALID_ENUM, 0, current);
    else if (!d->in_frame)
        fail(FRAME_ERROR, 0, current);
    else if (!isfinite(numbers[0] + numbers[1] + numbers[2]))
        fail(INVALID_VALUE, 0, current);
    else
        memcpy(d->force, numbers, sizeof d->force);
}

void hdSetFloatv(HDenum name, const float *numbers)
{
    const double wide[3] = {numbers[0], numbers[1], numbers[2]};
    hdSetDoublev(name, wide);
}

/* --- calibration ----------------------------------------------------------------------------------------------- */

HDenum hdCheckCalibration(void)
{
    const struct device *d = device_of(current);
    if (!d || faulty(d, FAULT_NO_INKWELL))
        return CALIBRATION_NEEDS_MANUAL_INPUT;
    return d->link.state.homed ? CALIBRATION_OK : CALIBRATION_NEEDS_UPDATE;
}

HDenum hdCheckCalibrationStyle(void) { return STYLE_INKWELL; }

void hdUpdateCalibration(HDenum style)
{
    struct device *d = device_of(current);
    if (d && style == STYLE_INKWELL && !faulty(d, FAULT_NO_INKWELL))
        transferred(d, link_set(&d->link, SET_HOMED, 1.0));
    else if (d)
        fail(DEVICE_FAULT, -11, current);
}

/* --- scheduler ------------------------------------------------------------------------------------------------- */

static int any_fault(int number)
{
    for (int i = 0; i < MOST_DEVICES; i++)
        if (devices[i].open && faulty(&devices[i], number))
            return 1;
    return 0;
}

static void run_callbacks(void)
{
    struct scheduled due[MOST_CALLBACKS];
    int count = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_CALLBACKS; i++) { /* sorted by priority */
        if (!callbacks[i].handle)
            continue;
        int place = count++;
        for (; place > 0 && due[place - 1].priority < callbacks[i].priority; place--)
            due[place] = due[place - 1];
        due[place] = callbacks[i];
    }
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < count; i++) {
        const HDCallbackCode code = due[i].callback(due[i].data);
        if (code)
            continue;
        pthread_mutex_lock(&lock);
        for (int k = 0; k < MOST_CALLBACKS; k++)
            if (callbacks[k].handle == due[i].handle)
                callbacks[k].handle = 0;
        pthread_cond_broadcast(&completed);
        pthread_mutex_unlock(&lock);
    }
}

static void *run_scheduler(void *unused)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (running) {
        tick++;
        tick_started = monotonic();
        if (any_fault(FAULT_STALL)) {
            for (int i = 0; i < MOST_DEVICES; i++)
                if (devices[i].open)
                    link_read(&devices[i].link);
        } else {
            run_callbacks();
        }
        next.tv_nsec += 1000000000 / RATE;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > next.tv_sec || (now.tv_sec == next.tv_sec && now.tv_nsec > next.tv_nsec))
            next = now; /* missed ticks are not repeated */
        else
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return unused;
}

static void set_forces(int on)
{
    for (int i = 0; i < MOST_DEVICES; i++)
        if (devices[i].open && devices[i].enabled & 1u)
            transferred(&devices[i], link_set(&devices[i].link, SET_FORCES, on));
}

void hdStartScheduler(void)
{
    if (running)
        return;
    set_forces(1);
    running = 1;
    if (any_fault(FAULT_NO_TIMER) || pthread_create(&scheduler, NULL, run_scheduler, NULL)) {
        running = 0;
        fail(TIMER_ERROR, -12, current);
    }
}

void hdStopScheduler(void)
{
    if (!running)
        return;
    running = 0;
    pthread_join(scheduler, NULL);
    set_forces(0);
}

void hdSetSchedulerRate(HDulong rate)
{
    if (rate != RATE)
        fail(INVALID_VALUE, 0, current);
}

HDSchedulerHandle hdScheduleAsynchronous(HDSchedulerCallback callback, void *data, HDushort priority)
{
    HDSchedulerHandle handle = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_CALLBACKS && !handle; i++)
        if (!callbacks[i].handle) {
            handle = ++last_handle;
            callbacks[i] = (struct scheduled){callback, data, priority, handle};
        }
    pthread_mutex_unlock(&lock);
    if (!handle)
        fail(SCHEDULER_FULL, 0, current);
    return handle;
}

static int is_scheduled(HDSchedulerHandle handle)
{
    for (int i = 0; i < MOST_CALLBACKS; i++)
        if (handle && callbacks[i].handle == handle)
            return i + 1;
    return 0;
}

HDboolean hdWaitForCompletion(HDSchedulerHandle handle, HDWaitCode code)
{
    pthread_mutex_lock(&lock);
    int found = is_scheduled(handle);
    while (code && found) {
        pthread_cond_wait(&completed, &lock);
        found = is_scheduled(handle);
    }
    pthread_mutex_unlock(&lock);
    return code ? 1 : found != 0;
}

void hdScheduleSynchronous(HDSchedulerCallback callback, void *data, HDushort priority)
{
    if (!running || pthread_equal(pthread_self(), scheduler)) {
        while (callback(data))
            ;
        return;
    }
    hdWaitForCompletion(hdScheduleAsynchronous(callback, data, priority), 1);
}

void hdUnschedule(HDSchedulerHandle handle)
{
    pthread_mutex_lock(&lock);
    const int found = is_scheduled(handle);
    if (found)
        callbacks[found - 1].handle = 0;
    pthread_cond_broadcast(&completed);
    pthread_mutex_unlock(&lock);
    if (!found)
        fail(INVALID_OPERATION, 0, current);
}

double hdGetSchedulerTimeStamp(void) { return monotonic() - tick_started; }

HDboolean hdDeploymentLicense(const char *vendor, const char *application, const char *password)
{
    return vendor && application && password;
}
