/* Of Apple's headers, what tt uses, for `./dev cross sample`; `./dev cross macos` has them all. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef unsigned mach_port_t, thread_act_t, mach_msg_type_number_t;
typedef thread_act_t* thread_act_array_t;
typedef uintptr_t vm_address_t, vm_size_t;
typedef int kern_return_t;
#define KERN_SUCCESS 0

extern "C" {
mach_port_t mach_task_self();
kern_return_t task_threads(mach_port_t, thread_act_array_t*, mach_msg_type_number_t*);
kern_return_t thread_get_register_pointer_values(thread_act_t, uintptr_t*, size_t*, uintptr_t*);
kern_return_t mach_port_deallocate(mach_port_t, mach_port_t);
kern_return_t vm_deallocate(mach_port_t, vm_address_t, vm_size_t);
uint64_t clock_gettime_nsec_np(int clock);
int sysctlbyname(const char*, void*, size_t*, void*, size_t);
}
#define CLOCK_UPTIME_RAW 8
#define F_FULLFSYNC 51
