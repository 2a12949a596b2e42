// Stacks, the switch between them, and the sanitizers' view of both.
#include "kernels/cuda/emu/fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if EMU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if EMU_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" void AnnotateIgnoreReadsBegin(const char*, int);
extern "C" void AnnotateIgnoreReadsEnd(const char*, int);
extern "C" void AnnotateIgnoreWritesBegin(const char*, int);
extern "C" void AnnotateIgnoreWritesEnd(const char*, int);
#endif

#if defined(__x86_64__)
// tt_emu_switch(void** save, void* to): keeps what a call must keep.
extern "C" void tt_emu_switch(void** save, void* to);
__asm__(
    ".text\n"
    ".globl tt_emu_switch\n"
    ".hidden tt_emu_switch\n"
    ".type tt_emu_switch,@function\n"
    "tt_emu_switch:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  ret\n"
    ".size tt_emu_switch,.-tt_emu_switch\n");
#endif

namespace TT_NS::emu {
namespace {

constexpr size_t kStackBytes = size_t(EMU_TSAN || EMU_ASAN ? 256 : 128) * 1024;
constexpr size_t kGuardBytes = 4096;

thread_local Fiber* t_current = nullptr;
thread_local Fiber* t_home = nullptr;  // the thread's own stack
#if EMU_ASAN
thread_local const void* t_home_stack = nullptr;
thread_local size_t t_home_bytes = 0;
#endif
thread_local Fiber* t_ended = nullptr;  // linked by Fiber::next

void entered() {
#if EMU_ASAN
  Fiber* self = t_current ? t_current : t_home;
  const void* from;
  size_t bytes;
  __sanitizer_finish_switch_fiber(self->fake_stack, &from, &bytes);
  if (t_current && !t_home_stack) {
    t_home_stack = from;
    t_home_bytes = bytes;
  }
#endif
}

void start() {
  entered();
  t_current->body(t_current->user);
  abort();
}

#if defined(__x86_64__)
void prepare(Fiber* f) {
  void** top = reinterpret_cast<void**>(f->stack + kStackBytes) - 2;
  *--top = nullptr;  // where start would return to
  *--top = reinterpret_cast<void*>(start);
  for (int i = 0; i < 6; i++) *--top = nullptr;
  f->sp = top;
}
void switch_stacks(Fiber* from, Fiber* to) { tt_emu_switch(&from->sp, to->sp); }
#else
void prepare(Fiber* f) {
  auto* context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = f->stack;
  context->uc_stack.ss_size = kStackBytes;
  context->uc_link = nullptr;
  makecontext(context, start, 0);
  f->sp = context;
}
void switch_stacks(Fiber* from, Fiber* to) {
  if (!from->sp) from->sp = new ucontext_t;
  swapcontext(static_cast<ucontext_t*>(from->sp), static_cast<ucontext_t*>(to->sp));
}
#endif

}  // namespace

Fiber* fiber_new(void (*body)(void*), void* user) {
  void* p = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED || mprotect(p, kGuardBytes, PROT_NONE)) {
    fprintf(stderr, "emulated device: no memory for the stack of a thread\n");
    abort();
  }
  auto* f = new Fiber;
  f->stack = static_cast<char*>(p) + kGuardBytes;
  f->body = body;
  f->user = user;
#if EMU_TSAN
  f->tsan = __tsan_create_fiber(0);
#endif
  prepare(f);
  return f;
}

Fiber* fiber_current() { return t_current; }

void fiber_switch(Fiber* to, bool ends) {
  static thread_local Fiber own;  // the thread's own stack
  t_home = &own;
  const bool goes_home = to == nullptr;
  Fiber* from = goes_home ? t_current : t_home;
  if (goes_home) to = t_home;
  if (goes_home && ends) {
    from->next = t_ended;
    t_ended = from;
  }
#if EMU_TSAN
  if (!from->tsan) from->tsan = __tsan_get_current_fiber();
#endif
#if EMU_ASAN
  if (goes_home) __sanitizer_start_switch_fiber(&from->fake_stack, t_home_stack, t_home_bytes);
  else __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, kStackBytes);
#endif
  t_current = goes_home ? nullptr : to;
#if EMU_TSAN
  __tsan_switch_to_fiber(to->tsan, __tsan_switch_to_fiber_no_sync);
#endif
  switch_stacks(from, to);
  entered();
}

static void unmap(Fiber* f) {
#if EMU_ASAN
  __asan_unpoison_memory_region(f->stack, kStackBytes);
#endif
#if EMU_TSAN
  __tsan_destroy_fiber(f->tsan);
#endif
  munmap(f->stack - kGuardBytes, kGuardBytes + kStackBytes);
  delete f;
}

// ThreadSanitizer refuses to see a thread end in the middle of what it ignores.
void fiber_abandon(Fiber* f) {
  if (!kFibersAreChecked) unmap(f);
}

void fiber_end_of_launch() {
  while (Fiber* f = t_ended) {
    t_ended = f->next;
    unmap(f);
  }
}

void fiber_release([[maybe_unused]] void* at) {
#if EMU_TSAN
  __tsan_release(at);
#endif
}
void fiber_acquire([[maybe_unused]] void* at) {
#if EMU_TSAN
  __tsan_acquire(at);
#endif
}
void fiber_ignore([[maybe_unused]] bool on) {
#if EMU_TSAN
  if (on) {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  } else {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#endif
}
void fiber_poison([[maybe_unused]] const void* p, [[maybe_unused]] size_t bytes) {
#if EMU_ASAN
  __asan_poison_memory_region(p, bytes);
#endif
}
void fiber_unpoison([[maybe_unused]] const void* p, [[maybe_unused]] size_t bytes) {
#if EMU_ASAN
  __asan_unpoison_memory_region(p, bytes);
#endif
}

}  // namespace TT_NS::emu
