/* Lets user-mode Linux 6.1 run on processors with more registers than it knows, such as those of AMX.
 *
 * It keeps the floating-point registers of a process in a buffer of fixed size. The host gives it as many bytes as fit,
 * but takes registers back only whole. This library, preloaded, adds those that are missing as they are at the moment:
 * the processes inside do not use them, for nobody tells them that they are there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

typedef long (*Ptrace)(enum __ptrace_request, pid_t, void *, void *);

long ptrace(enum __ptrace_request request, ...)
{
    static Ptrace next;
    static char whole[1 << 16]; /* stacks are small in there, and one thread does it all */
    va_list words;
    va_start(words, request);
    pid_t process = va_arg(words, pid_t);
    void *place = va_arg(words, void *);
    void *data = va_arg(words, void *);
    va_end(words);
    if (next == NULL)
        next = (Ptrace)dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SETREGSET && (long)place == NT_X86_XSTATE) {
        struct iovec given = *(struct iovec *)data, all = {whole, sizeof whole};
        if (next(PTRACE_GETREGSET, process, place, &all) == 0 && all.iov_len > given.iov_len) {
            memcpy(whole, given.iov_base, given.iov_len);
            return next(request, process, place, &all);
        }
    }
    return next(request, process, place, data);
}
