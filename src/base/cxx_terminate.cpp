// The terminate handler of static programs. libstdc++'s demangles the name of the exception's type,
// for 49 kB; this one prints it as it is. Part of libtt.a alone, and weak, so that two copies of tt
// share it. error.cpp asks for it; a dynamic libstdc++ keeps its own handler.
#include <cxxabi.h>
#include <exception>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TT_SHARED __attribute__((weak, visibility("default")))

static void print(const char* text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) return;
}

static void print_exception() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (!type) return print("terminate called without an active exception\n");
  print("terminate called after throwing an instance of '");
  print(type->name());
  print("'\n");
  try {
    throw;
  } catch (const std::exception& e) {
    print("  what():  ");
    print(e.what());
    print("\n");
  } catch (...) {}
}

extern "C" TT_SHARED void tt_abort_on_terminate() {
  static bool terminating;  // a what() that throws
  if (!terminating) {
    terminating = true;
    print_exception();
  }
  abort();
}

namespace __cxxabiv1 {
using Handler = void (*)();
extern TT_SHARED Handler __terminate_handler;
constinit Handler __terminate_handler = tt_abort_on_terminate;
}  // namespace __cxxabiv1
