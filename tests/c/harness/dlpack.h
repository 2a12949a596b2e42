/* DLPack 1.1, as its header declares it. */
#ifndef TT_TEST_DLPACK_H
#define TT_TEST_DLPACK_H

#include <stdint.h>

typedef struct Dl {
  void* data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} Dl;
typedef struct Managed {
  Dl t;
  void* context;
  void (*deleter)(struct Managed*);
} Managed;
typedef struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct Versioned*);
  uint64_t flags;
  Dl t;
} Versioned;

#endif
