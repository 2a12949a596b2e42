/* Libraries on Windows under their names in POSIX, for the tests of the fake device. */
#ifndef TT_CROSS_DLFCN_H
#define TT_CROSS_DLFCN_H

__declspec(dllimport) void* __stdcall LoadLibraryA(const char*);
__declspec(dllimport) void* __stdcall GetProcAddress(void*, const char*);
__declspec(dllimport) int __stdcall FreeLibrary(void*);
__declspec(dllimport) void* __stdcall GetModuleHandleA(const char*);
enum { RTLD_NOW = 0, RTLD_LOCAL = 0, RTLD_NOLOAD = 1 };

static inline void* dlopen(const char* path, int mode) {
  if (mode & RTLD_NOLOAD && !GetModuleHandleA(path)) return (void*)0;
  return LoadLibraryA(path);
}
static inline void* dlsym(void* library, const char* name) { return GetProcAddress(library, name); }
static inline int dlclose(void* library) { return !FreeLibrary(library); }
static inline const char* dlerror(void) { return "LoadLibrary failed"; }

#endif
