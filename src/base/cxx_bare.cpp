// What the minimal profile replaces of libstdc++ and libatomic. One thread runs, and no interrupt
// calls tt.
#include "base/platform.h"

#include <stdlib.h>
#include <string.h>

// ---- exceptions: tt throws an empty type, one at a time per nested call ----

namespace __cxxabiv1 {

using Handler = void (*)();
extern Handler __terminate_handler;
constinit Handler __terminate_handler = abort;  // libstdc++'s prints a demangled name, for 40 kB

}  // namespace __cxxabiv1

namespace {

// Larger than libstdc++'s header of an exception and the object.
constexpr size_t kHeader = 128, kObject = 32, kExceptions = 4;
struct alignas(16) Exception {
  char bytes[kHeader + kObject];
  bool used;
};
Exception exceptions[kExceptions];

void* take_exception(size_t bytes) {
  if (bytes > kObject) abort();
  for (Exception& e : exceptions) {
    if (e.used) continue;
    memset(&e, 0, sizeof e);
    e.used = true;
    return e.bytes + kHeader;
  }
  abort();
}

void give_exception(void* object) {
  for (Exception& e : exceptions)
    if (e.bytes + kHeader == object) e.used = false;
}

}  // namespace

extern "C" {

// libstdc++'s allocate 36 kB when the program starts, for the case that memory is short.
void* __cxa_allocate_exception(size_t bytes) noexcept { return take_exception(bytes); }
void __cxa_free_exception(void* object) noexcept { give_exception(object); }
void* __cxa_allocate_dependent_exception() noexcept { abort(); }
void __cxa_free_dependent_exception(void*) noexcept { abort(); }

// ---- atomic operations on 8 bytes, for which the processor has no instruction ----

uint64_t __atomic_load_8(const volatile void* p, int) {
  return *static_cast<const volatile uint64_t*>(p);
}
void __atomic_store_8(volatile void* p, uint64_t v, int) {
  *static_cast<volatile uint64_t*>(p) = v;
}
uint64_t __atomic_exchange_8(volatile void* p, uint64_t v, int) {
  auto* at = static_cast<volatile uint64_t*>(p);
  const uint64_t old = *at;
  *at = v;
  return old;
}
bool __atomic_compare_exchange_8(volatile void* p, void* expected, uint64_t v, bool, int, int) {
  auto* at = static_cast<volatile uint64_t*>(p);
  auto* seen = static_cast<uint64_t*>(expected);
  const uint64_t old = *at;
  if (old != *seen) {
    *seen = old;
    return false;
  }
  *at = v;
  return true;
}
uint64_t __atomic_fetch_add_8(volatile void* p, uint64_t v, int) {
  auto* at = static_cast<volatile uint64_t*>(p);
  const uint64_t old = *at;
  *at = old + v;
  return old;
}
uint64_t __atomic_fetch_sub_8(volatile void* p, uint64_t v, int) {
  return __atomic_fetch_add_8(p, 0 - v, 0);
}
uint64_t __atomic_fetch_or_8(volatile void* p, uint64_t v, int) {
  auto* at = static_cast<volatile uint64_t*>(p);
  const uint64_t old = *at;
  *at = old | v;
  return old;
}
uint64_t __atomic_fetch_and_8(volatile void* p, uint64_t v, int) {
  auto* at = static_cast<volatile uint64_t*>(p);
  const uint64_t old = *at;
  *at = old & v;
  return old;
}

}  // extern "C"
