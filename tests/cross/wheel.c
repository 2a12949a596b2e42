/* What Python does with the library of a wheel for Windows, without Python: wheel LIBRARY NAMES
   loads it, finds every function that the file NAMES lists, trains one number by a few of
   them, and asks for more memory than there is. */
#include "tt.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

static HMODULE library;

/* The function `name` as `target`, a pointer to a pointer to it. */
static int find(const char* name, void* target) {
  const FARPROC found = GetProcAddress(library, name);
  if (!found) printf("the library has no %s\n", name);
  memcpy(target, &found, sizeof found);
  return found != NULL;
}
#define FIND(f)          \
  __typeof__(tt_##f)* f; \
  if (!find("tt_" #f, &f)) return 1

static int find_all(const char* path) {
  char name[200];
  int found = 0;
  void* function;
  FILE* names = fopen(path, "r");
  while (names && fscanf(names, "%199s", name) == 1) {
    if (!find(name, &function)) return 0;
    found++;
  }
  if (names) fclose(names);
  printf("%d functions\n", found);
  return found;
}

/* The gradient of x * x at 3, as the package computes it. */
static int use(void) {
  const double three = 3;
  double got = 0;
  tt_ctx* c;
  tt_tensor *x, *y, *gradient;
  FIND(version);
  FIND(ctx_new);
  FIND(ctx_release);
  FIND(tensor_from_data);
  FIND(requires_grad_);
  FIND(mul);
  FIND(backward);
  FIND(tensor_grad);
  FIND(tensor_read);
  FIND(tensor_release);
  printf("version %s\n", version());
  if (ctx_new(NULL, &c)) return 2;
  if (tensor_from_data(c, &three, TT_F64, NULL, 0, &x)) return 3;
  if (requires_grad_(c, x, 1) || mul(c, x, x, &y) || backward(c, y, NULL)) return 4;
  if (tensor_grad(c, x, &gradient) || tensor_read(c, gradient, &got, sizeof got)) return 5;
  tensor_release(gradient);
  tensor_release(y);
  tensor_release(x);
  ctx_release(c);
  return got == 6 ? 0 : 6;
}

/* Bytes of addresses that are reserved and have no memory. */
static size_t reserved(void) {
  MEMORY_BASIC_INFORMATION info;
  size_t sum = 0;
  char* at = NULL;
  while (VirtualQuery(at, &info, sizeof info)) {
    if (info.State == MEM_RESERVE) sum += info.RegionSize;
    at = (char*)info.BaseAddress + info.RegionSize;
  }
  return sum;
}

/* A tensor for which there is no memory keeps no addresses. */
static int fail_to_allocate(void) {
  const int64_t shape[1] = {(int64_t)1 << 42};
  tt_ctx* c;
  tt_tensor* x;
  size_t before;
  FIND(ctx_new);
  FIND(ctx_release);
  FIND(empty);
  if (ctx_new(NULL, &c)) return 2;
  before = reserved();
  if (empty(c, shape, 1, NULL, &x) != TT_OOM) return 7;
  if (reserved() >= before + (size_t)shape[0]) return 8;
  ctx_release(c);
  return 0;
}

int main(int argc, char** argv) {
  int status;
  if (argc != 3) return 10;
  library = LoadLibraryA(argv[1]);
  if (!library) {
    printf("%s: error %lu\n", argv[1], GetLastError());
    return 11;
  }
  if (!find_all(argv[2])) return 12;
  status = use();
  if (!status) status = fail_to_allocate();
  FreeLibrary(library);
  return status;
}
