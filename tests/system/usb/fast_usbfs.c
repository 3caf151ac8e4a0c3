/* A USB device file system in the program itself, with an ODrive of the native protocol that answers with zeros.

   To be preloaded in front of umockdev, which shows the device and opens its file. A transfer takes LATENCY, half of it
   until its packet is on the wire and half until the program hears of it; a packet has the wire for itself for PACKET.
   The drive takes no packet while it has an answer that was not read. There is no thread: what is due by now is done when
   the program asks. What the calls mean is in linux/usbdevice_fs.h. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/usbdevice_fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#define LATENCY 250000LL
#define PACKET 20000LL
#define IDLE 1000000LL
#define MOST 256

typedef struct usbdevfs_urb Urb;
typedef struct {
    Urb *urb;
    long long at; /* submitted; then, when it is over */
} Entry;
typedef struct {
    Entry entries[MOST];
    int count;
} Queue;

static Queue out, in, over;
static unsigned char answer[64];
static int answer_length = -1;
static long long answer_at, wire_free;
static int just_gave;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t); /* the clock of pthread_cond_timedwait */
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long later(long long a, long long b)
{
    return a > b ? a : b;
}

static void push(Queue *queue, Urb *urb, long long at)
{
    queue->entries[queue->count].urb = urb;
    queue->entries[queue->count++].at = at;
}

static Entry take(Queue *queue, int place)
{
    Entry entry = queue->entries[place];
    memmove(queue->entries + place, queue->entries + place + 1, (--queue->count - place) * sizeof(Entry));
    return entry;
}

static void end(Urb *urb, int status, int length, long long at)
{
    urb->status = status;
    urb->actual_length = length;
    push(&over, urb, at);
}

static void hear(const unsigned char *packet, int length, long long at)
{
    uint16_t head[3];
    if (length < 8)
        return;
    memcpy(head, packet, 6);
    if (!(head[1] & 0x8000))
        return;
    head[0] |= 0x8000;
    memset(answer, 0, sizeof answer);
    memcpy(answer, head, 2);
    answer_length = 2 + (head[2] < 61 ? head[2] : 61);
    answer_at = at;
}

/* When the next packet is on the wire, and which way it goes; never if there is none. */
static long long next(int *inward)
{
    long long never = INT64_MAX, go_out = never, go_in = never;
    if (answer_length < 0 && out.count)
        go_out = later(wire_free, out.entries[0].at + LATENCY / 2);
    if (answer_length >= 0 && in.count)
        go_in = later(later(wire_free, answer_at), in.entries[0].at + LATENCY / 2);
    *inward = go_in < go_out;
    return *inward ? go_in : go_out;
}

static void advance(long long until)
{
    int inward;
    long long at;
    while ((at = next(&inward)) <= until) {
        Urb *urb = take(inward ? &in : &out, 0).urb;
        wire_free = at + PACKET;
        if (inward) {
            memcpy(urb->buffer, answer, answer_length);
            end(urb, 0, answer_length, wire_free + LATENCY / 2);
            answer_length = -1;
        } else {
            end(urb, 0, urb->buffer_length, wire_free + LATENCY / 2);
            hear(urb->buffer, urb->buffer_length, wire_free);
        }
    }
}

static int submit(Urb *urb)
{
    if (urb->type == USBDEVFS_URB_TYPE_CONTROL)
        end(urb, -EPIPE, 0, now());
    else
        push(urb->endpoint & 0x80 ? &in : &out, urb, now());
    pthread_cond_broadcast(&changed);
    return 0;
}

static int discard(Urb *urb)
{
    Queue *queues[] = {&out, &in};
    for (int which = 0; which < 2; which++)
        for (int place = 0; place < queues[which]->count; place++)
            if (queues[which]->entries[place].urb == urb) {
                take(queues[which], place);
                end(urb, -ENOENT, 0, now());
                pthread_cond_broadcast(&changed);
                return 0;
            }
    errno = EINVAL;
    return -1;
}

/* The file is always ready, so libusb would ask without a pause: it waits here, unless it was given something before. */
static int reap(Urb **urb)
{
    long long latest = now() + IDLE;
    for (;;) {
        long long instant = now(), wake = latest;
        int inward;
        advance(instant);
        for (int place = 0; place < over.count; place++)
            if (over.entries[place].at <= instant) {
                *urb = take(&over, place).urb;
                just_gave = 1;
                return 0;
            } else if (over.entries[place].at < wake)
                wake = over.entries[place].at;
        if (just_gave || instant >= latest) {
            just_gave = 0;
            errno = EAGAIN;
            return -1;
        }
        long long due = next(&inward);
        wake = due < wake ? due : wake;
        struct timespec t = {wake / 1000000000LL, wake % 1000000000LL};
        pthread_cond_timedwait(&changed, &lock, &t);
    }
}

static int call(unsigned long request, void *argument)
{
    switch (request) {
    case USBDEVFS_SUBMITURB:
        return submit(argument);
    case USBDEVFS_REAPURB:
    case USBDEVFS_REAPURBNDELAY:
        return reap(argument);
    case USBDEVFS_DISCARDURB:
        return discard(argument);
    case USBDEVFS_GETDRIVER:
        errno = ENODATA;
        return -1;
    case USBDEVFS_GET_CAPABILITIES:
        *(uint32_t *)argument = USBDEVFS_CAP_ZERO_PACKET | USBDEVFS_CAP_NO_PACKET_SIZE_LIM;
        return 0;
    case USBDEVFS_CLAIMINTERFACE:
    case USBDEVFS_RELEASEINTERFACE:
    case USBDEVFS_RESET:
    case USBDEVFS_CLEAR_HALT:
        return 0;
    }
    errno = ENOTTY;
    return -1;
}

int ioctl(int file, unsigned long request, ...)
{
    static int (*real)(int, unsigned long, ...);
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (_IOC_TYPE(request) != 'U') {
        if (!real)
            real = dlsym(RTLD_NEXT, "ioctl");
        return real(file, request, argument);
    }
    pthread_mutex_lock(&lock);
    int result = call(request, argument), error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}
