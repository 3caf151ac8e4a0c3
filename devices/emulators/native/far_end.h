/* Emulated device behind a maker's library: messages between the library in the host process and the device.

   The device sends its state to a new host. Every transfer is then one command and one reply, over a socket of packets
   (SOCK_SEQPACKET). Times are of CLOCK_MONOTONIC.
   Faults are bits in the order of the maker's table (devices.emulators.wire_faults); the compiler is given their
   numbers as FAULT_NAME. */

#ifndef FAR_END_H
#define FAR_END_H

#include <stdint.h>
#include <time.h>

enum command_kind { COMMAND_READ, COMMAND_FORCE, COMMAND_SET };
enum parameter {
    SET_FORCES,      /* 1: the motors follow the commands, and the cause of an earlier switch-off is cleared; 0: off */
    SET_BRAKES,      /* 1: motors that are off brake; 0: they are free */
    SET_WATCHDOG,    /* time without a force after which the forces are switched off [s]; 0: never */
    SET_SPEED_LIMIT, /* speed above which the forces are switched off [m/s]; 0: none */
    SET_HOMED,       /* 1: find the reference positions */
    SET_OUTPUT       /* digital output, as bits */
};

struct command {
    int32_t kind, parameter;
    double value;    /* of SET */
    double force[3]; /* of FORCE, along the device's axes [N] */
};

struct state {
    int32_t busy;    /* another host has opened the device: this one is not served */
    int32_t cause;   /* why the forces are off, in the maker's numbers; 0 if they are on, or were switched off by command */
    int32_t forces_on, braking, homed, buttons;
    uint64_t faults; /* present faults */
    double time;     /* of the sample [s] */
    double position[3]; /* along the device's axes [m] */
    double weight[3];   /* of the moving parts [N] */
    double most_force;  /* of the motors [N] */
};

static inline double monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int has_fault(uint64_t faults, int number) { return (int)(faults >> number & 1u); }

#endif
